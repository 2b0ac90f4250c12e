"""The file that the interpreter is started with; what it does is in `user_program`.

Python compiles this file at each start and holds what that takes until it is done: until the program has ended,
which would then wait for all of it to be given back. The program runs right here: no frame of ours but this one is
below it, where Python's own would have none.
"""

import user_program

with user_program.wait() as program:
    program.awaited = eval(*program)  # noqa: S307 - running the caller's code is the purpose
