"""From the element tree to the intermediate representation, `render.ir`; ``reader.read`` is the door."""
