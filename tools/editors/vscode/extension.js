// .tile files in Visual Studio Code: starts `tilec lsp` and hands its answers to the editor's API.
'use strict';
const vscode = require('vscode');
const { Client } = require('./client');

const LANGUAGE = 'tile', MOST_STARTS = 5;
const CANCELLED = -32800;
let client, log, diagnostics, starts = 0, leaving = false, status = Promise.resolve();

// ---- what the protocol says, in the editor's words ----

const position = (p) => new vscode.Position(p.line, p.character);
const range = (r) => new vscode.Range(position(r.start), position(r.end));
const location = (l) => new vscode.Location(vscode.Uri.parse(l.uri), range(l.range));
const place = (p) => ({ line: p.line, character: p.character });
const part = (r) => ({ start: place(r.start), end: place(r.end) });
const markdown = (m) => m && new vscode.MarkdownString(typeof m === 'string' ? m : m.value);
const textEdit = (e) => new vscode.TextEdit(range(e.range), e.newText);

function workspaceEdit(edit) {
  const all = new vscode.WorkspaceEdit();
  for (const [uri, edits] of Object.entries(edit.changes))
    all.set(vscode.Uri.parse(uri), edits.map(textEdit));
  return all;
}

function diagnostic(d) {
  const one = new vscode.Diagnostic(range(d.range), d.message, d.severity - 1);
  Object.assign(one, { code: d.code, source: d.source, tags: d.tags });
  one.relatedInformation = (d.relatedInformation || []).map(
    (r) => new vscode.DiagnosticRelatedInformation(location(r.location), r.message));
  return one;
}

function symbol(s) {
  const one = new vscode.DocumentSymbol(s.name, s.detail || '', s.kind - 1, range(s.range), range(s.selectionRange));
  one.children = (s.children || []).map(symbol);
  return one;
}

function completion(c) {
  const one = new vscode.CompletionItem(c.label, c.kind - 1);
  return Object.assign(one, { detail: c.detail, documentation: markdown(c.documentation) });
}

function signatureHelp(h) {
  const help = new vscode.SignatureHelp();
  help.signatures = h.signatures.map((s) => {
    const one = new vscode.SignatureInformation(s.label, markdown(s.documentation));
    one.parameters = s.parameters.map((p) => new vscode.ParameterInformation(p.label));
    return one;
  });
  return Object.assign(help, { activeSignature: h.activeSignature, activeParameter: h.activeParameter });
}

function codeAction(a) {
  const one = new vscode.CodeAction(a.title, vscode.CodeActionKind.QuickFix);
  return Object.assign(one, { edit: workspaceEdit(a.edit), diagnostics: a.diagnostics.map(diagnostic) });
}

function inlay(h) {
  return new vscode.InlayHint(position(h.position), h.label, h.kind);
}

const FOLDS = { comment: vscode.FoldingRangeKind.Comment, imports: vscode.FoldingRangeKind.Imports };
const fold = (f) => new vscode.FoldingRange(f.startLine, f.endLine, FOLDS[f.kind]);
const list = (one) => (all) => (all || []).map(one);
const maybe = (one) => (x) => (x ? one(x) : undefined);

// ---- requests ----

const of = (document) => ({ textDocument: { uri: document.uri.toString() } });
const at = (document, p) => ({ ...of(document), position: place(p) });

// The answer in the editor's words; nothing when it was cancelled or the server is gone. `loud`: a refusal is shown.
async function ask(method, params, token, convert, loud) {
  try {
    await status;
    return convert(await client.ask(method, params, (f) => token && token.onCancellationRequested(f)));
  } catch (e) {
    if (loud && e.code !== CANCELLED)
      throw e;
    return undefined;
  }
}

function register(context, legend) {
  const name = 'textDocument/', L = vscode.languages;
  const add = (kind, provider, ...more) => context.subscriptions.push(L[`register${kind}Provider`](LANGUAGE, provider, ...more));
  add('Hover', { provideHover: (d, p, t) =>
    ask(name + 'hover', at(d, p), t, maybe((h) => new vscode.Hover(markdown(h.contents), range(h.range)))) });
  add('Definition', { provideDefinition: (d, p, t) => ask(name + 'definition', at(d, p), t, maybe(location)) });
  add('Reference', { provideReferences: (d, p, c, t) => ask(name + 'references', { ...at(d, p), context: c }, t, list(location)) });
  add('DocumentHighlight', { provideDocumentHighlights: (d, p, t) =>
    ask(name + 'documentHighlight', at(d, p), t, list((h) => new vscode.DocumentHighlight(range(h.range)))) });
  add('DocumentSymbol', { provideDocumentSymbols: (d, t) => ask(name + 'documentSymbol', of(d), t, list(symbol)) });
  add('CompletionItem', { provideCompletionItems: (d, p, t) => ask(name + 'completion', at(d, p), t, list(completion)) }, '.');
  add('SignatureHelp', { provideSignatureHelp: (d, p, t) => ask(name + 'signatureHelp', at(d, p), t, maybe(signatureHelp)) }, '(', ',');
  add('DocumentFormattingEdit', { provideDocumentFormattingEdits: (d, o, t) =>
    ask(name + 'formatting', { ...of(d), options: o }, t, list(textEdit)) });
  add('CodeActions', { provideCodeActions: (d, r, c, t) =>
    ask(name + 'codeAction', { ...of(d), range: part(r), context: {} }, t, list(codeAction)) });
  add('InlayHints', { provideInlayHints: (d, r, t) => ask(name + 'inlayHint', { ...of(d), range: part(r) }, t, list(inlay)) });
  add('FoldingRange', { provideFoldingRanges: (d, c, t) => ask(name + 'foldingRange', of(d), t, list(fold)) });
  add('Rename', {
    prepareRename: (d, p, t) =>
      ask(name + 'prepareRename', at(d, p), t, (r) => ({ range: range(r.range), placeholder: r.placeholder }), true),
    provideRenameEdits: (d, p, newName, t) => ask(name + 'rename', { ...at(d, p), newName }, t, workspaceEdit, true),
  });
  const tokens = (r) => new vscode.SemanticTokens(new Uint32Array(r.data));
  const words = new vscode.SemanticTokensLegend(legend.tokenTypes, legend.tokenModifiers);
  add('DocumentSemanticTokens', { provideDocumentSemanticTokens: (d, t) => ask(name + 'semanticTokens/full', of(d), t, maybe(tokens)) }, words);
  context.subscriptions.push(L.registerWorkspaceSymbolProvider({ provideWorkspaceSymbols: (query, t) =>
    ask('workspace/symbol', { query }, t, list((s) => new vscode.SymbolInformation(s.name, s.kind - 1, '', location(s.location)))) }));
}

// ---- documents ----

const ours = (document) => document.languageId === LANGUAGE;

function opened(document) {
  if (ours(document))
    client.tell('textDocument/didOpen', { textDocument: {
      uri: document.uri.toString(), languageId: LANGUAGE, version: document.version, text: document.getText() } });
}

// The editor lists changes as parts of the text before all of them, from the last to the first, so that they can be applied in turn.
function changed(event) {
  if (ours(event.document) && event.contentChanges.length)
    client.tell('textDocument/didChange', {
      textDocument: { uri: event.document.uri.toString(), version: event.document.version },
      contentChanges: event.contentChanges.map((c) => ({ range: part(c.range), text: c.text })) });
}

function noticed(method, params) {
  if (method === 'textDocument/publishDiagnostics')
    diagnostics.set(vscode.Uri.parse(params.uri), params.diagnostics.map(diagnostic));
  else if (method === 'window/logMessage')
    log.appendLine(params.message);
}

// ---- the server's life ----

function ended(reason) {
  log.appendLine(reason);
  if (leaving)
    return;
  diagnostics.clear();
  if (starts < MOST_STARTS)
    status = start().catch((e) => log.appendLine(e.message));
  else
    vscode.window.showErrorMessage(`${reason}. The setting tile.path names the compiler.`);
}

async function start() {
  const settings = vscode.workspace.getConfiguration(LANGUAGE), folder = (vscode.workspace.workspaceFolders || [])[0];
  const args = ['lsp', ...settings.get('includes', []).flatMap((d) => ['-I', d])];
  const target = settings.get('target', '');
  starts++;
  client = new Client(settings.get('path', 'tilec'), target ? [...args, '--target', target] : args,
    { cwd: folder && folder.uri.fsPath }, noticed, ended);
  const capabilities = await client.start(folder ? folder.uri.toString() : null);
  vscode.workspace.textDocuments.forEach(opened);
  return capabilities;
}

async function activate(context) {
  const W = vscode.workspace;
  log = vscode.window.createOutputChannel('Tile');
  diagnostics = vscode.languages.createDiagnosticCollection(LANGUAGE);
  context.subscriptions.push(log, diagnostics);
  const first = start();
  status = first;
  const capabilities = await first.catch(() => undefined);
  if (!capabilities)
    return;
  register(context, capabilities.semanticTokensProvider.legend);
  const tell = (method) => (d) => ours(d) && client.tell(`textDocument/${method}`, of(d));
  context.subscriptions.push(W.onDidOpenTextDocument(opened), W.onDidChangeTextDocument(changed),
    W.onDidSaveTextDocument(tell('didSave')), W.onDidCloseTextDocument(tell('didClose')));
}

function deactivate() {
  leaving = true;
  return client && client.stop();
}

module.exports = { activate, deactivate };
