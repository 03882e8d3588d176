"""Clients of model servers with an OpenAI-compatible API, and of user functions."""
