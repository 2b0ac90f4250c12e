"""The JavaScript tool: the same contract, the same blocks, node as if started by hand."""

import pytest

from proofbox.contracts.tools import Language
from tests.container.calling import Caller

pytestmark = [pytest.mark.docker, pytest.mark.asyncio(loop_scope="session")]

WORKER = """
const { Worker } = require('worker_threads');
new Worker('require("worker_threads").parentPort.postMessage(7)', { eval: true }).on('message', console.log);
"""


# What node does by sendfile where that is let through, and a server and its client.
COPY_AND_SERVE = """
const fs = require('fs'), http = require('http');
fs.writeFileSync('/tmp/a', Buffer.alloc(300000));
fs.copyFileSync('/tmp/a', 'files/b');
fs.copyFileSync('/tmp/a', '/dev/shm/c');
console.log(fs.statSync('files/b').size, fs.statSync('/dev/shm/c').size);
const server = http.createServer((_, answer) => fs.createReadStream('/tmp/a').pipe(answer));
server.listen(0, '127.0.0.1', async () => {
  const answer = await fetch(`http://127.0.0.1:${server.address().port}`);
  console.log((await answer.arrayBuffer()).byteLength);
  server.close();
});
"""
DATAGRAM = """
const socket = require('dgram').createSocket('udp4');
socket.on('message', (message) => { console.log(String(message)); socket.close(); });
socket.bind(0, '127.0.0.1', () => { socket.setTTL(2); socket.send('sent', socket.address().port, '127.0.0.1'); });
"""


@pytest.mark.parametrize(
    ("code", "printed"),
    [
        ("console.log([3, 1, 2].sort().join('-'), 6 * 7)", "1-2-3 42\n"),
        ("const path = require('path');\nconsole.log(path.basename('/a/b.txt'))", "b.txt\n"),
        ("import { basename } from 'node:path';\nconsole.log(basename('/a/b.txt'))", "b.txt\n"),
        ("const { basename } = await import('path');\nconsole.log(basename('/a/b.txt'))", "b.txt\n"),
        (
            "console.log(process.cwd(), process.argv.slice(1), process.env.OUT_DIR)",
            "/out/turn_1/files [ '/job/main.js' ] /out\n",
        ),
        ("console.log(process.env.TURN_ID, typeof fetch)", "turn_1 function\n"),
        ("setTimeout(() => console.log('later'), 20); console.log('now')", "now\nlater\n"),
        ("console.log(require('child_process').execSync('echo shell').toString().trim())", "shell\n"),
        (WORKER, "7\n"),
        (COPY_AND_SERVE, "300000 300000\n300000\n"),
        (DATAGRAM, "sent\n"),
        ("console.log(new Intl.NumberFormat('de-DE').format(1234.5))", "1.234,5\n"),
    ],
)
async def test_program_means_what_it_means_to_node(call: Caller, code: str, printed: str) -> None:
    response = await call(code, language=Language.NODE)
    assert (await call.output(), await call.output("stderr")) == (printed, "")
    assert response.ok, response.report


@pytest.mark.parametrize(
    ("code", "code_of_error", "message"),
    [
        ("process.exit(3)", "nonzero_exit", "exit status 3"),
        ("null.x", "nonzero_exit", "TypeError: Cannot read properties of null (reading 'x')"),
        ("const a = ;", "nonzero_exit", "SyntaxError: Unexpected token ';'"),
        ("require('lodash')", "nonzero_exit", "Error: Cannot find module 'lodash'"),
        ("process.kill(process.pid, 'SIGSEGV'); setInterval(() => {}, 1000)", "killed", "SIGSEGV (signal 11)"),
        pytest.param("for (;;);", "timeout", "", marks=pytest.mark.slow),
    ],
)
async def test_failure_of_a_program_is_its_exit_status(
    call: Caller, code: str, code_of_error: str, message: str
) -> None:
    response = await call(code, language=Language.NODE, timeout_s=5 if code_of_error == "timeout" else 60)
    assert response.error is not None
    assert response.error.code == code_of_error
    assert message in response.report, response.report


async def test_program_that_takes_all_memory_is_stopped(call: Caller) -> None:
    code = "const all = []; for (;;) all.push(Buffer.alloc(16 * 1024 * 1024, 1));"
    response = await call(code, language=Language.NODE, limits={"memory_bytes": 128 * 1024 * 1024})
    assert response.error is not None
    assert response.error.code == "out_of_memory", response.report


async def test_files_of_a_program_are_judged_as_those_of_any_program(call: Caller) -> None:
    code = (
        "const fs = require('fs');\n"
        "fs.mkdirSync('files/sub', { recursive: true });\n"
        "fs.writeFileSync('files/sub/t.csv', 'a,b\\n1,2\\n');\n"
        "fs.writeFileSync('files/data.json', JSON.stringify({ rows: [1, 2] }));\n"
    )
    response = await call(code, ["sub/t.csv", "data.json", "not.txt"], language=Language.NODE)
    assert response.report.startswith(
        "Runtime error: execution_failed — Missing output files: turn_1/files/not.txt\n"
    ), response.report
    assert await call.text("data.json") == '{"rows":[1,2]}'


async def test_code_block_of_a_program_is_javascript(call: Caller) -> None:
    response = await call("1", language=Language.NODE)
    [block] = [block for block in response.blocks if block.type == "react.tool.code"]
    assert (block.mime, block.text, block.path) == ("text/javascript", "1", f"fi:turn_1.code.{call.last_id}")


TYPED = """\
interface Row { x: number }
enum Colour { Red, Green = 5 }
import { basename } from 'node:path';
class Box<T> { constructor(private y: T) {} get(): T { return this.y } }
const first = (row: Row): number => row.x!;
const box = new Box<number>(4);
console.log(first({ x: 1 }), Colour.Green, box.get(), basename('/a/b') as string, await Promise.resolve(2));
"""


@pytest.mark.parametrize(
    ("code", "printed", "message"),
    [
        (TYPED, "1 5 4 b 2\n", ""),
        ("const a: number = 1;\nconsole.log(a satisfies number)", "1\n", ""),
        ("const a: number = 1;\n\nthrow new Error(`boo ${a}`)", "", "/job/main.js:3"),
        ("enum A { B }\ntype C = string;\n\nthrow new Error(A[0])", "", "/job/main.js:4"),
        ("const a: number = ;", "", "SyntaxError"),
    ],
)
async def test_typescript_runs_and_keeps_its_lines(call: Caller, code: str, printed: str, message: str) -> None:
    response = await call(code, language=Language.NODE)
    assert await call.output() == printed, response.report
    assert response.ok is not bool(message), response.report
    assert message in await call.output("stderr")


async def test_a_full_heap_is_named_and_follows_the_memory(call: Caller) -> None:
    fill = "const kept = []; for (;;) kept.push(new Array(1e5).fill(kept.length + 0.5))"
    response = await call(fill, language=Language.NODE, limits={"memory_bytes": 256 * 1024 * 1024})
    assert response.report.startswith("Runtime error: out_of_memory"), response.report
    assert "JavaScript heap out of memory" in response.report.splitlines()[0]
    code = "console.log(require('v8').getHeapStatistics().heap_size_limit >> 20)"
    assert (await call(code, language=Language.NODE, limits={"memory_bytes": 512 * 1024 * 1024})).ok
    assert 384 <= int(await call.output()) < 512
