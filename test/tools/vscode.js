// Runs the extension in tools/editors/vscode with a stand-in for the editor's API, on a real server:
//     node vscode.js EXTENSION TILEC
'use strict';
const assert = require('assert'), Module = require('module'), path = require('path');
const [extension, tilec] = process.argv.slice(2);

class Any {
  constructor(...args) { this.args = args; }
}
class Position { constructor(line, character) { Object.assign(this, { line, character }); } }
class Range {
  constructor(start, end) { Object.assign(this, { start, end }); }
  toJSON() { return [this.start, this.end]; } // as the editor's
}
class WorkspaceEdit {
  constructor() { this.all = []; }
  set(uri, edits) { this.all.push([uri.text, edits]); }
}
class Diagnostic { constructor(range, message, severity) { Object.assign(this, { range, message, severity }); } }

const text = 'auto twice(auto x) { return x + x; }\nkernel k(f32 x[N]) grid(1) { x[0] = twice(x[0]); }\n';
const uri = { text: 'file:///a.tile', toString() { return this.text; } };
const document = { uri, languageId: 'tile', version: 1, getText: () => text };
const providers = {}, events = {}, found = new Map();
let told;
const dispose = { dispose() {} };
const languages = new Proxy({
  createDiagnosticCollection: () => ({ set: (u, d) => { found.set(u.text, d); if (told) told(d); }, clear() {}, ...dispose }),
}, { get: (o, name) => o[name] || ((...args) => { providers[name] = args.find((a) => typeof a === 'object'); return dispose; }) });
const workspace = new Proxy({
  textDocuments: [document], workspaceFolders: [],
  getConfiguration: () => ({ get: (name, other) => (name === 'path' ? tilec : other) }),
}, { get: (o, name) => o[name] || ((f) => { events[name] = f; return dispose; }) });
const vscode = new Proxy({
  Position, Range, WorkspaceEdit, Diagnostic, languages, workspace,
  Uri: { parse: (t) => ({ text: t, toString: () => t }) },
  CodeActionKind: {}, FoldingRangeKind: {},
  window: { createOutputChannel: () => ({ appendLine() {}, ...dispose }), showErrorMessage: (m) => { throw new Error(m); } },
}, { get: (o, name) => o[name] || Any });
const load = Module._load;
Module._load = (name, ...more) => (name === 'vscode' ? vscode : load(name, ...more));

const next = () => new Promise((resolve) => { told = resolve; });
const token = { onCancellationRequested() {} };

async function main() {
  const { activate, deactivate } = require(path.resolve(extension, 'extension.js'));
  let news = next();
  await activate({ subscriptions: [] });
  assert.deepStrictEqual(await news, []);
  const at = new Position(1, 38);
  const hover = await providers.registerHoverProvider.provideHover(document, at, token);
  assert.match(hover.args[0].args[0], /auto twice\(auto x\)/);
  const where = await providers.registerDefinitionProvider.provideDefinition(document, at, token);
  assert.strictEqual(where.args[1].start.character, 5);
  const rename = providers.registerRenameProvider;
  const edit = await rename.provideRenameEdits(document, at, 'double2', token);
  assert.strictEqual(edit.all[0][1].length, 2);
  await assert.rejects(rename.provideRenameEdits(document, at, 'for', token), /a word of the language/);
  assert.strictEqual((await rename.prepareRename(document, at, token)).placeholder, 'twice');
  const help = await providers.registerSignatureHelpProvider.provideSignatureHelp(document, new Position(1, 42), token);
  assert.strictEqual(help.signatures[0].args[0], 'auto twice(auto x)');
  const tokens = await providers.registerDocumentSemanticTokensProvider.provideDocumentSemanticTokens(document, token);
  assert.ok(tokens.args[0].length >= 10);
  const whole = new Range(new Position(0, 0), new Position(9, 0));
  const { registerInlayHintsProvider: inlays, registerDocumentSymbolProvider: symbols } = providers;
  assert.strictEqual((await inlays.provideInlayHints(document, whole, token)).length, 1);
  assert.strictEqual((await symbols.provideDocumentSymbols(document, token)).length, 2);
  assert.ok((await providers.registerCompletionItemProvider.provideCompletionItems(document, at, token)).length > 100);
  assert.deepStrictEqual(await providers.registerFoldingRangeProvider.provideFoldingRanges(document, {}, token), []);
  assert.strictEqual((await providers.registerWorkspaceSymbolProvider.provideWorkspaceSymbols('twi', token)).length, 1);
  // a change, and the fix of what it breaks
  news = next();
  events.onDidChangeTextDocument({ document: { ...document, version: 2 },
    contentChanges: [{ range: new Range(new Position(1, 36), new Position(1, 41)), text: 'twicee' }] });
  const [wrong] = await news;
  assert.strictEqual(wrong.code, 'E0201');
  const [fix] = await providers.registerCodeActionsProvider.provideCodeActions(document, wrong.range, {}, token);
  assert.strictEqual(fix.edit.all[0][1][0].args[1], 'twice');
  await deactivate();
  console.log('the extension works');
}

main().catch((e) => { console.error(e); process.exit(1); });
