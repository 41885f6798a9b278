// A client of the Language Server Protocol over the pipes of a child process. Knows nothing of the editor.
'use strict';
const { spawn } = require('child_process');

// The messages that are whole at the beginning of `data`, and what is left.
function split(data) {
  const messages = [];
  for (;;) {
    const end = data.indexOf('\r\n\r\n');
    if (end < 0)
      return { messages, rest: data };
    const length = /content-length: *(\d+)/i.exec(data.toString('ascii', 0, end));
    const begin = end + 4, stop = begin + (length ? Number(length[1]) : 0);
    if (data.length < stop)
      return { messages, rest: data };
    if (length)
      messages.push(JSON.parse(data.toString('utf8', begin, stop)));
    data = data.subarray(stop);
  }
}

class Client {
  // onNotice(method, params): what the server says unasked; onEnd(reason): it is gone, and stays so.
  constructor(command, args, options, onNotice, onEnd) {
    this.next = 1;
    this.waiting = new Map(); // id -> { resolve, reject }
    this.onNotice = onNotice;
    this.ended = false;
    let data = Buffer.alloc(0);
    this.process = spawn(command, args, { ...options, stdio: ['pipe', 'pipe', 'ignore'] });
    const end = (reason) => {
      if (this.ended)
        return;
      this.ended = true;
      for (const w of this.waiting.values())
        w.reject(new Error(reason));
      this.waiting.clear();
      onEnd(reason);
    };
    this.process.on('error', (e) => end(e.message));
    this.process.on('exit', (code, signal) => end(`tilec lsp ended (${signal || code})`));
    this.process.stdin.on('error', () => {}); // 'exit' says it
    this.process.stdout.on('data', (piece) => {
      const { messages, rest } = split(Buffer.concat([data, piece]));
      data = rest;
      messages.forEach((m) => this.take(m));
    });
  }

  take(message) {
    const w = this.waiting.get(message.id);
    if (message.method) {
      this.onNotice(message.method, message.params);
    } else if (w) {
      this.waiting.delete(message.id);
      if (message.error)
        w.reject(Object.assign(new Error(message.error.message), { code: message.error.code }));
      else
        w.resolve(message.result);
    }
  }

  post(message) {
    const body = Buffer.from(JSON.stringify({ jsonrpc: '2.0', ...message }));
    if (!this.ended)
      this.process.stdin.write(Buffer.concat([Buffer.from(`Content-Length: ${body.length}\r\n\r\n`), body]));
  }

  tell(method, params) {
    this.post({ method, params });
  }

  // onCancel(f): calls f when the answer is not wanted any more.
  ask(method, params, onCancel) {
    const id = this.next++;
    if (this.ended)
      return Promise.reject(new Error('tilec lsp is not running'));
    const answer = new Promise((resolve, reject) => this.waiting.set(id, { resolve, reject }));
    if (onCancel)
      onCancel(() => this.waiting.has(id) && this.tell('$/cancelRequest', { id }));
    this.post({ id, method, params });
    return answer;
  }

  async start(rootUri) {
    const result = await this.ask('initialize', { processId: process.pid, rootUri, capabilities: {} });
    this.tell('initialized', {});
    return result.capabilities;
  }

  async stop() {
    if (this.ended)
      return;
    await this.ask('shutdown').catch(() => {});
    this.tell('exit');
  }
}

module.exports = { Client, split };
