"""Every option once: frozen records that a config is read into and that the core, engine and scorers take.

A record holds an option's description, default and bounds, and checks itself.
"""
