// Trains and predicts beside the page, so that it stays responsive. A message is { ask, table }; the answer is what the
// function of that name says.
const loaded = WebAssembly.instantiateStreaming(fetch("svml_web.wasm"));

onmessage = async ({ data: { ask, table } }) => {
  try {
    const { exports } = (await loaded).instance;
    const bytes = new TextEncoder().encode(table ?? "");
    const room = exports.input(bytes.length);
    // Memory may have moved while it grew: it is looked up after each call.
    new Uint8Array(exports.memory.buffer, room, bytes.length).set(bytes);
    const started = performance.now();
    exports[ask]();
    const seconds = (performance.now() - started) / 1000;
    const output = new Uint8Array(exports.memory.buffer, exports.output(), exports.output_bytes()).slice();
    const told = ask === "model" ? { error: null, bytes: output } : JSON.parse(new TextDecoder().decode(output));
    postMessage({ ask, seconds, ...told });
  } catch (error) {
    postMessage({ ask, error: `the module failed: ${error.message}` });
  }
};
