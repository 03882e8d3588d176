"""The decision core: synchronous and pure. It decides; the engine acts."""
