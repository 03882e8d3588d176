"""Why simulated runs end, in lockstep and as a session."""

from __future__ import annotations
