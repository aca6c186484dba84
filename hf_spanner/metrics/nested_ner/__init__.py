"""The folder that `evaluate` loads; copied to a Hub Space it works by itself."""
