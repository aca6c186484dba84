"""Serving: a pipeline behind HTTP, concurrent requests read together (`hf-spanner serve`)."""
