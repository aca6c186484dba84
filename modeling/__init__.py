"""What travels to the Hub: configurations, models, span maths, decoding and the pipeline. Only torch and transformers.

The files are flat and import each other as `from .x import y`, so that a model repository can carry the few it needs
and run without this package. Nothing here is registered on import; `hf_spanner/__init__.py` does that.
"""
