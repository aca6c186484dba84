"""Bulk prediction: files larger than memory, read in parts that survive a kill; the same for Ray, Spark and torchrun.

sources.py → records → parts.blocks → `Predictor` → parts.py: a part a block, joined at the end
"""
