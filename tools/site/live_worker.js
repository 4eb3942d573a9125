/* Runs a trained model beside the page, so that the page stays quick. It is started from
   a text (see live.js), behind that of live_unpack.js: pages opened from a disk may start
   no other. */

const sessions = {};
let weights = null;
let about = null;
let newest = 0; // the request that is worked on; a later one, or a stop, ends it

/* Let messages in: the library's own promises do not wait for them. */
const channel = new MessageChannel();
const breathe = () => new Promise((resolve) => {
  channel.port1.onmessage = resolve;
  channel.port2.postMessage(0);
});

const begin = async ({ runtime, model }) => {
  const { library, glue, wasm } = await unpack(runtime);
  importScripts(address(library));
  ort.env.logLevel = "error";
  ort.env.wasm.numThreads = 1;
  ort.env.wasm.wasmPaths = { mjs: address(glue) };
  ort.env.wasm.wasmBinary = wasm.buffer;
  const files = await unpack(model);
  weights = files.weights;
  about = files.about ? JSON.parse(new TextDecoder().decode(files.about)) : {};
  for (const name of Object.keys(files)) {
    if (name === "weights" || name === "about") continue;
    sessions[name] = await ort.InferenceSession.create(files[name], {
      executionProviders: ["wasm"],
      externalData: [{ path: "weights", data: weights }],
    });
  }
  weights = null; // the library has its own copy
  return about;
};

const integers = (values) =>
  new ort.Tensor("int32", Int32Array.from(values), [values.length]);

/* Write the most probable token, again and again; report each. */
const translate = async ({ ids }, request) => {
  const { layers, heads, width, longest, start, end, never } = about;
  const { encoder, decoder } = sessions;
  const feeds = await encoder.run({ ids: integers(ids) });
  const remembered = decoder.inputNames.filter((name) => name.startsWith("back_"));
  for (const name of remembered)
    feeds[name] = new ort.Tensor("float32", new Float32Array(0), [heads, 0, width]);
  let token = start;
  let place = 0;
  while (token !== end && place < longest - 1) {
    const made = await decoder.run({ ...feeds, id: integers([token]),
      place: integers([place]) });
    for (const name of remembered) feeds[name] = made[`next_${name}`];
    const logits = made.logits.data;
    token = -1;
    logits.forEach((value, id) => {
      if (!never.includes(id) && (token < 0 || value > logits[token])) token = id;
    });
    place += 1;
    postMessage({ request, step: { token, logits: logits.slice(),
      attention: made.attention.data.slice(), shape: [layers, heads, ids.length] } });
    await breathe();
    if (request !== newest) return { stopped: true };
  }
  return { stopped: false, ended: token === end };
};

/* Read an image; then once more without each of its patches. */
const read = async ({ image, shape, patches }) => {
  const all = Array.from({ length: patches }, (_, number) => number);
  const see = async (seen) => {
    const made = await sessions.vision.run({
      image: new ort.Tensor("float32", Float32Array.from(image), shape),
      patches: integers(seen),
    });
    return { logits: [...made.logits.data], attention: [...made.attention.data],
      shape: made.attention.dims };
  };
  const whole = await see(all);
  const without = [];
  for (const left of all)
    without.push((await see(all.filter((patch) => patch !== left))).logits);
  return { ...whole, without };
};

const calls = { begin, translate, read, stop: async () => {} };

onmessage = async ({ data: { request, call, given } }) => {
  newest = request;
  try {
    postMessage({ request, result: await calls[call](given, request) });
  } catch (error) {
    postMessage({ request, error: String(error?.message ?? error) });
  }
};
