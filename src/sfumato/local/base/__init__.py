"""What all protocols share: their interface, aggregators, files, planners, simulators and threads."""
