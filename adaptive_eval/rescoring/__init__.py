"""Stored answers under another scorer or rubric, without asking anything."""
