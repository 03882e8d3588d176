"""Processes of this machine: they see what their caller sees."""

import os

from adaptive_eval.executors.processes import process_pool


def test_a_later_pool_has_the_environment_and_the_folder_of_its_time(tmp_path, monkeypatch):
    """As functions of one's own need that score stored answers: one server forks for the whole session."""
    with process_pool(1) as pool:
        pool.submit(os.getpid).result()
    monkeypatch.setenv("SET_LATER", "yes")
    monkeypatch.chdir(tmp_path)
    with process_pool(1) as pool:
        assert pool.submit(os.getenv, "SET_LATER").result() == "yes"
        assert pool.submit(os.getcwd).result() == str(tmp_path)
