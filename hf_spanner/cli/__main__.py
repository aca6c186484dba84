"""`python -m hf_spanner.cli`: the command `hf-spanner`, for launchers that start a module (torchrun, accelerate)."""

from . import main

raise SystemExit(main())
