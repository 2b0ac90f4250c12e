"""Opens rendered files with programs that know nothing of the renderer, and tells what they found."""
