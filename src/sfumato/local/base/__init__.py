"""What all protocols share: their interface, files, planners, simulators, and work on several cores."""
