"""Comparisons of models while trials arrive: e-values and confidence sequences that hold at every look."""
