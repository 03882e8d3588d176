"""The words and figures that the terminal, the reports and later views share, so that all say the same."""
