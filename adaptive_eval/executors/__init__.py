"""Workers elsewhere that make requests and score answers; the engine decides, counts and stores."""
