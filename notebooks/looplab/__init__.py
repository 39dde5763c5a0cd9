"""The bench of the notebooks: widgets, plots, checks and worlds. A reader need not study it."""
