// Uses the service through npm's chromiumly: URL, key and output folder as arguments.
import { writeFile } from 'node:fs/promises'
import { createRequire } from 'node:module'

const [url, key, out] = process.argv.slice(2)
const require = createRequire(`${process.env.CLIENT_MODULES}/`)
const { Chromiumly, HtmlConverter, MarkdownConverter, HtmlScreenshot, PDFEngines, System } = require('chromiumly')

Chromiumly.configure({ endpoint: url, username: 'loop', password: key })
const page = Buffer.from('<title>From Node</title><link rel=stylesheet href=style.css><h1>Hello</h1>')
const style = Buffer.from('h1 { color: #00ff00 }')
const assets = [{ file: style, name: 'style.css' }]
const save = (name, content) => writeFile(`${out}/${name}`, content)

const version = (await System.getVersion()).toString()
const health = JSON.parse((await System.getHealth()).toString())
await save(
  'page.pdf',
  await new HtmlConverter().convert({
    html: page,
    assets,
    header: Buffer.from('<b class="title"></b>'),
    properties: { size: { width: '210mm', height: '297mm' }, margins: { top: 1, bottom: '2cm' }, scale: 0.5 },
    metadata: { Author: 'Bob', Creator: 'chromiumly' },
    trace: 'trace-of-node'
  })
)
await save(
  'notes.pdf',
  await new MarkdownConverter().convert({
    html: Buffer.from('<h1>Notes</h1>{{ toHTML "file.md" }}'),
    markdown: Buffer.from('| a | b |\n|---|---|\n| 1 | 2 |\n')
  })
)
await save(
  'page.webp',
  await new HtmlScreenshot().capture({ html: page, assets, properties: { format: 'webp', width: 500, height: 200, clip: true } })
)
const files = [`${out}/page.pdf`, `${out}/notes.pdf`]
const merged = await PDFEngines.merge({ files, metadata: { Title: 'Merged' } })
await save('merged.pdf', merged)
const rotated = await PDFEngines.rotate({ files: [`${out}/notes.pdf`], angle: 90 })
await save('rotated.pdf', rotated)
const locked = await PDFEngines.encrypt({ files: [`${out}/notes.pdf`], options: { userPassword: 'u', ownerPassword: 'o' } })
await save('locked.pdf', locked)
const metadata = JSON.parse((await PDFEngines.readMetadata({ files: [`${out}/merged.pdf`] })).toString())
const refused = await new HtmlConverter()
  .convert({ html: page, waitForExpression: 'window.ready' })
  .then(() => '', (error) => error.message)
console.log(JSON.stringify({ version, status: health.status, metadata, refused }))
