"""From the element tree to the intermediate representation, `render.ir`; its entry is ``reader.read``."""
