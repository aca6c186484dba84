"""Speed as ratios: what is measured against what cannot be avoided, in the same run."""
