// SPDX-License-Identifier: Apache-2.0
// Opens YAML files in the YAML language server, as an editor does, under the JSON Schemas that `orrery schema` prints, and
// fails on every message it has for them. usage: check_schemas.mjs SERVER ORRERY FILE...
import {spawn, execFileSync} from 'node:child_process';
import {mkdtempSync, readFileSync, rmSync, writeFileSync} from 'node:fs';
import {tmpdir} from 'node:os';
import {join, resolve} from 'node:path';
import {pathToFileURL} from 'node:url';

const [serverPath, orrery, ...files] = process.argv.slice(2);

/// Speaks the language server protocol over stdio: each message is a head with its length, and JSON.
class Server {
  constructor(path) {
    this.process = spawn(process.execPath, [path, '--stdio'], {stdio: ['pipe', 'pipe', 'inherit']});
    this.received = Buffer.alloc(0);
    this.waiting = new Map();      // answers by request
    this.diagnosed = new Map();    // who waits for what is said of a document
    this.configuration = {};
    this.next = 1;
    this.process.stdout.on('data', data => this.take(data));
    this.process.on('exit', code => { if (!this.closing) fail(`the language server ended with ${code}`); });
  }

  take(data) {
    this.received = Buffer.concat([this.received, data]);
    for (;;) {
      const end = this.received.indexOf('\r\n\r\n');
      if (end < 0) return;
      const length = Number(/Content-Length: (\d+)/i.exec(this.received.toString('latin1', 0, end))[1]);
      if (this.received.length < end + 4 + length) return;
      const message = JSON.parse(this.received.toString('utf8', end + 4, end + 4 + length));
      this.received = this.received.subarray(end + 4 + length);
      this.handle(message);
    }
  }

  handle(message) {
    if (message.method === undefined) {
      this.waiting.get(message.id)?.(message.result);
      this.waiting.delete(message.id);
    } else if (message.method === 'textDocument/publishDiagnostics') {
      this.diagnosed.get(message.params.uri)?.(message.params.diagnostics);
    } else if (message.method === 'workspace/configuration') {
      this.send({id: message.id, result: message.params.items.map(item => this.configuration[item.section] ?? null)});
    } else if (message.id !== undefined) {
      this.send({id: message.id, result: null});
    }
  }

  send(message) {
    const text = JSON.stringify({jsonrpc: '2.0', ...message});
    this.process.stdin.write(`Content-Length: ${Buffer.byteLength(text)}\r\n\r\n${text}`);
  }

  notify(method, params) { this.send({method, params}); }

  ask(method, params) {
    const id = this.next++;
    this.send({id, method, params});
    return new Promise(done => this.waiting.set(id, done));
  }

  async start(schemas) {
    this.configuration.yaml = {schemas, validate: true, hover: true, completion: true, schemaStore: {enable: false}};
    await this.ask('initialize', {processId: process.pid, rootUri: null, capabilities: {workspace: {configuration: true}}});
    this.notify('initialized', {});
    this.notify('workspace/didChangeConfiguration', {settings: this.configuration});
  }

  /// What the server says of a text.
  open(uri, text) {
    const said = new Promise(done => this.diagnosed.set(uri, done));
    this.notify('textDocument/didOpen', {textDocument: {uri, languageId: 'yaml', version: 1, text}});
    return said.finally(() => this.diagnosed.delete(uri));
  }

  stop() {
    this.closing = true;
    this.process.kill();
  }
}

function fail(message) {
  console.error(`check_schemas: ${message}`);
  process.exit(1);
}

/// Kinds of files that have a schema, and the kind of each file, as the program tells them.
function kindsOf(paths) {
  const kinds = new Map();
  for (const line of execFileSync(orrery, ['schema', '--of', ...paths], {encoding: 'utf8'}).trim().split('\n')) {
    const [kind, path] = line.split('\t');
    kinds.set(path, kind);
  }
  return kinds;
}

const kinds = kindsOf(files);
const folder = mkdtempSync(join(tmpdir(), 'orrery-schemas-'));
process.on('exit', () => rmSync(folder, {recursive: true, force: true}));
const schemas = {};
for (const kind of new Set(kinds.values())) {
  const path = join(folder, `${kind}.json`);
  writeFileSync(path, execFileSync(orrery, ['schema', kind], {maxBuffer: 1 << 26}));
  schemas[pathToFileURL(path).href] = `*.${kind}.yaml`;
}

const server = new Server(resolve(serverPath));
await server.start(schemas);

/// Documents are named by their kind, which is how the server finds the schema.
const uriOf = (name, kind) => `file:///checked/${name.replaceAll(/[^A-Za-z0-9]/g, '_')}.${kind}.yaml`;

/// What the server says of files, all opened at once: it waits a moment after each change.
const said = await Promise.all(files.map(path => server.open(uriOf(path, kinds.get(path)), readFileSync(path, 'utf8'))));
let messages = 0;
files.forEach((path, i) => {
  for (const {range, message} of said[i]) {
    console.log(`${path}:${range.start.line + 1}:${range.start.character + 1}: ${message}`);
    ++messages;
  }
});

// A check that could not fail would say nothing: in a file of each kind a key that nobody knows must be found, a misspelt
// one too, and what is known must be told.
for (const kind of new Set(kinds.values())) {
  const path = files.find(file => kinds.get(file) === kind);
  const added = kind === 'published' ? '\n- {id: x, nobody_knows_this: 1}\n' : '\nnobody_knows_this: 1\n';
  if ((await server.open(uriOf(`${path}_wrong`, kind), readFileSync(path, 'utf8') + added)).length === 0)
    fail(`an unknown key in ${path} was not found`);
}
const wrong = uriOf('wrong', 'experiment');
const text = 'experiment: operator\nsystem: dgx_h100\noperator: {kind: gemm, m: 16, n: 16, k: 16}\nprecisoin: bf16\n';
if ((await server.open(wrong, text)).length === 0) fail('a misspelt key was not found');
const hover = await server.ask('textDocument/hover', {textDocument: {uri: wrong}, position: {line: 1, character: 2}});
if (!JSON.stringify(hover ?? '').includes('machine')) fail(`no help on the key 'system': ${JSON.stringify(hover)}`);
const offered = await server.ask('textDocument/completion', {textDocument: {uri: wrong}, position: {line: 4, character: 0}});
const labels = (offered?.items ?? []).map(item => item.label);
if (!labels.includes('precision')) fail(`'precision' was not offered: ${labels.join(' ')}`);

server.stop();
console.log(`${files.length} files, ${messages} messages`);
process.exit(messages > 0 ? 1 : 0);
