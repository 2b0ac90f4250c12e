"""Work on the stores and the engine of this machine, without HTTP."""
