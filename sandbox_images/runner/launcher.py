"""The file that the interpreter is started with; what it does is in `user_program`.

Python compiles this file at each start and holds what that takes until it is done: until the program has ended,
which would then wait for all of it to be given back.
"""

import user_program

user_program.main()
