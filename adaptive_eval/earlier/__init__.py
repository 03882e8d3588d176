"""What a run takes from earlier: answers of its own earlier phases, models and trials of earlier runs."""
