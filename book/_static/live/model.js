/* Trained models of the course, opened: read from the folder that `train` writes, and run
   in plain JavaScript, so that every number on the way is kept.

     const model = Model.open({ config, weights, tokenizer }); // texts, and an ArrayBuffer
     const trace = Model.read(model, { source, target }, changes);

   The steps are those of solutions/transformer/, and the tests compare them. A matrix of
   activations is a list of rows, one for each token: so a text can grow by a token. */
const Model = (() => {
  "use strict";

  const [PAD, SOS, EOS] = [0, 2, 3]; // of a translator
  const EPSILON = 1e-5;
  const BASE = 10000; // of positions
  const LARGEST = { layers: 64, max_length: 100000, vocab_size: 1e6, d_model: 8192,
    d_ff: 65536, heads: 256, kv_heads: 256 };

  /* What is wrong with a folder, in a line for its reader. */
  class Refused extends Error {}
  const refuse = (text) => { throw new Refused(text); };

  // Files -------------------------------------------------------------------------------

  const half = (bits) => {
    const sign = bits & 0x8000 ? -1 : 1;
    const [exponent, rest] = [(bits >> 10) & 31, bits & 1023];
    if (exponent === 0) return sign * rest * 2 ** -24;
    if (exponent === 31) return rest ? NaN : sign * Infinity;
    return sign * (1 + rest / 1024) * 2 ** (exponent - 15);
  };
  const READERS = { // type -> bytes, and how they are read
    F64: [8, (view, at) => view.getFloat64(at, true)],
    F32: [4, (view, at) => view.getFloat32(at, true)],
    F16: [2, (view, at) => half(view.getUint16(at, true))],
    BF16: [2, (view, at) => {
      const [whole] = new Float32Array(Uint32Array.of(view.getUint16(at, true) << 16).buffer);
      return whole;
    }],
    I8: [1, (view, at) => view.getInt8(at)],
  };

  /* safetensors -> { name: { shape, data } }, all as Float32Array. What is whole numbers
     stands beside NAME.scales, a unit for each row: so the site's own copies are kept. */
  const tensorsOf = (buffer) => {
    const broken = () => refuse("model.safetensors is not a whole safetensors file: it was cut "
      + "short, or is of another format. Copy it again.");
    if (buffer.byteLength < 8) broken();
    const view = new DataView(buffer);
    const length = Number(view.getBigUint64(0, true));
    if (length > buffer.byteLength - 8) broken();
    let header;
    try {
      header = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 8, length)));
    } catch { broken(); }
    const found = {};
    for (const [name, about] of Object.entries(header)) {
      if (name === "__metadata__") continue;
      const { dtype, shape, data_offsets: [from, to] = [] } = about;
      if (!READERS[dtype]) refuse(`model.safetensors: ${name} holds ${dtype}, no weights.`);
      const [size, read] = READERS[dtype];
      const count = shape.reduce((product, side) => product * side, 1);
      const start = 8 + length + from;
      if (to - from !== count * size || 8 + length + to > buffer.byteLength) broken();
      const data = new Float32Array(count);
      if (dtype === "F32" && start % 4 === 0) data.set(new Float32Array(buffer, start, count));
      else for (let i = 0; i < count; i += 1) data[i] = read(view, start + i * size);
      found[name] = { shape, data };
    }
    for (const [name, { shape: [rows], data: units }] of Object.entries(found)) {
      if (!name.endsWith(".scales")) continue;
      const { data } = found[name.slice(0, -".scales".length)];
      const width = data.length / rows;
      for (let i = 0; i < data.length; i += 1) data[i] *= units[Math.floor(i / width)];
      delete found[name];
    }
    return found;
  };

  const parsed = (text, name) => {
    try {
      return JSON.parse(text);
    } catch {
      return refuse(`${name} is not JSON: it was cut short or edited. Take a copy of the `
        + "original.");
    }
  };

  const KINDS = { vit: "a Vision Transformer", cnn: "a convolutional network" };

  const configOf = (text) => {
    const config = parsed(text, "config.json");
    const kind = config?.kind;
    if (kind !== "translator" && kind !== "lm") {
      refuse(KINDS[kind] ? `This is ${KINDS[kind]}. This page opens translators and language `
        + "models." : "config.json names no model of this course.");
    }
    const counted = ["vocab_size", "d_model", "heads", "layers", "d_ff", "max_length"];
    for (const name of kind === "lm" ? [...counted, "kv_heads"] : counted) {
      const value = config[name];
      if (!Number.isInteger(value) || value < 1 || value > LARGEST[name])
        refuse(`config.json: ${name} is ${JSON.stringify(value)}, and must be a whole number `
          + `from 1 to ${LARGEST[name]}.`);
    }
    const { d_model, heads, kv_heads = heads } = config;
    if (d_model % heads) refuse(`config.json: ${heads} heads do not divide ${d_model} features.`);
    if (heads % kv_heads) refuse(`config.json: kv_heads ${kv_heads} do not divide ${heads} heads.`);
    if ((config.positions === "rotary" ? d_model / heads : d_model) % 2)
      refuse("config.json: positions need an even number of features.");
    return kind === "lm" ? config : { tied: true, scaled: true, ...config };
  };

  // The tensors that a configuration asks for: name -> shape ------------------------------

  const withBias = (d) => Object.fromEntries([..."qkvo"].flatMap((which) =>
    [[`w_${which}`, [d, d]], [`b_${which}`, [d]]]));
  const feedForward = (d, inner) => ({ w_1: [d, inner], b_1: [inner], w_2: [inner, d],
    b_2: [d] });
  const norm = (d, kind = "layer") => (kind === "rms" ? { gamma: [d] }
    : { gamma: [d], beta: [d] });

  const partsOf = (config) => {
    const { kind, d_model: d, d_ff: inner, heads } = config;
    if (kind === "translator") {
      const both = { feed_forward: feedForward(d, inner), norm_1: norm(d), norm_2: norm(d) };
      const end = config.norm_first ? { norm: norm(d) } : {};
      return { embedding: { weight: [config.vocab_size, d] },
        encoder: { layers: { attention: withBias(d), ...both }, ...end },
        decoder: { layers: { self_attention: withBias(d), cross_attention: withBias(d),
          ...both, norm_3: norm(d) }, ...end },
        ...(config.tied ? {} : { output: [config.vocab_size, d] }) };
    }
    const few = (d / heads) * config.kv_heads;
    const gated = config.feed_forward === "swiglu";
    return { embedding: { weight: [config.vocab_size, d] },
      ...(config.positions === "rotary" ? {} : { position: { table: [config.max_length, d] } }),
      blocks: { attention: { w_q: [d, d], w_k: [d, few], w_v: [d, few], w_o: [d, d] },
        feed_forward: gated ? { w_gate: [d, inner], w_up: [d, inner], w_down: [inner, d] }
          : feedForward(d, inner),
        norm_1: norm(d, config.norm), norm_2: norm(d, config.norm),
        ...(config.qk_norm ? { norm_q: norm(d / heads, "rms"), norm_k: norm(d / heads, "rms") }
          : {}) },
      norm: norm(d, config.norm) };
  };

  const shapesOf = (config) => {
    const shapes = new Map();
    const add = (name, part) => {
      if (Array.isArray(part)) { shapes.set(name, part); return; }
      for (const [each, inner] of Object.entries(part)) {
        const repeated = each === "layers" || each === "blocks";
        for (let i = 0; i < (repeated ? config.layers : 1); i += 1)
          add([name, each, repeated ? i : ""].filter((text) => text !== "").join("."), inner);
      }
    };
    add("", partsOf(config));
    return shapes;
  };

  const checked = (config, tensors) => {
    const shapes = shapesOf(config);
    for (const [name, shape] of shapes) {
      const found = tensors[name];
      if (!found) refuse(`model.safetensors lacks ${name}: config.json is of another model.`);
      if (String(found.shape) !== String(shape))
        refuse(`model.safetensors: ${name} has the shape (${found.shape.join(", ")}), and `
          + `config.json asks for (${shape.join(", ")}).`);
      if (!found.data.every(Number.isFinite))
        refuse(`model.safetensors: ${name} holds NaN or infinity. Train again.`);
    }
    const unknown = Object.keys(tensors).find((name) => !shapes.has(name));
    if (unknown) refuse(`model.safetensors has ${unknown}, which config.json does not ask for.`);
    return tensors;
  };

  const tokensOf = (text, config) => {
    const content = parsed(text, "tokenizer.json");
    const other = () => refuse("tokenizer.json is not a tokenizer of this course. Copy it again.");
    let made;
    try {
      made = config.kind === "lm" ? Tokens.ofText(content) : Tokens.ofFile(content);
    } catch { other(); }
    if (made.size > config.vocab_size || (config.kind === "lm" && made.size < config.vocab_size))
      refuse(`tokenizer.json has ${made.size} tokens, and config.json ${config.vocab_size}: they `
        + "are of two models.");
    return made;
  };

  /* Open a model: the texts of config.json and tokenizer.json, the bytes of
     model.safetensors, null where a file is missing. What does not fit is refused, in one
     line. */
  const open = ({ config: text, weights, tokenizer }) => {
    const config = configOf(text);
    for (const [name, found] of [["model.safetensors", weights], ["tokenizer.json", tokenizer]])
      if (found === null) refuse(`There is no ${name} beside config.json.`);
    const tensors = checked(config, tensorsOf(weights));
    const { heads } = config;
    return { config, tensors, tokens: tokensOf(tokenizer, config), kind: config.kind,
      width: config.d_model / heads };
  };

  // Arithmetic: one token, a row of numbers ------------------------------------------------

  /* x W + b, four rows of W at a time. */
  const linear = (x, { shape: [rows, columns], data }, bias = null) => {
    const sum = new Float64Array(columns);
    if (bias) sum.set(bias.data);
    let i = 0;
    for (; i + 3 < rows; i += 4) {
      const [a, b, c, d] = [x[i], x[i + 1], x[i + 2], x[i + 3]];
      const first = i * columns;
      const second = first + columns, third = second + columns, fourth = third + columns;
      for (let j = 0; j < columns; j += 1) {
        sum[j] += a * data[first + j] + b * data[second + j] + c * data[third + j]
          + d * data[fourth + j];
      }
    }
    for (; i < rows; i += 1)
      for (let j = 0; j < columns; j += 1) sum[j] += x[i] * data[i * columns + j];
    return new Float32Array(sum);
  };

  const dot = (a, b) => {
    let sum = 0;
    for (let i = 0; i < a.length; i += 1) sum += a[i] * b[i];
    return sum;
  };
  const add = (a, b) => a.map((value, i) => value + b[i]);
  const times = (a, factor) => a.map((value) => value * factor);
  const size = (a) => Math.sqrt(dot(a, a));

  const layerNorm = (x, { gamma, beta }) => {
    const mean = x.reduce((sum, value) => sum + value, 0) / x.length;
    const variance = x.reduce((sum, value) => sum + (value - mean) ** 2, 0) / x.length;
    const root = Math.sqrt(variance + EPSILON);
    return x.map((value, i) => (gamma.data[i] * (value - mean)) / root + beta.data[i]);
  };
  const rmsNorm = (x, { gamma }) => {
    const root = Math.sqrt(dot(x, x) / x.length + EPSILON);
    return x.map((value, i) => (gamma.data[i] * value) / root);
  };
  const normalise = (x, parameters) =>
    (parameters.beta ? layerNorm : rmsNorm)(x, parameters);

  /* The error function to about 1e-7 (Numerical Recipes, section 6.2). */
  const CHEBYSHEV = [-1.26551223, 1.00002368, 0.37409196, 0.09678418, -0.18628806, 0.27886807,
    -1.13520398, 1.48851587, -0.82215223, 0.17087277];
  const erf = (x) => {
    const t = 1 / (1 + Math.abs(x) / 2);
    const inner = CHEBYSHEV.reduceRight((sum, each) => sum * t + each, 0);
    const value = 1 - t * Math.exp(-x * x + inner);
    return x < 0 ? -value : value;
  };
  const relu = (x) => Math.max(0, x);
  const gelu = (x) => 0.5 * x * (1 + erf(x / Math.SQRT2));
  const silu = (x) => x / (1 + Math.exp(-x));

  /* Weights of the scores that are allowed; a row in which none is allowed is zero. */
  const maskedSoftmax = (scores, allowed) => {
    let most = -Infinity;
    scores.forEach((score, i) => { if (allowed[i]) most = Math.max(most, score); });
    let total = 0;
    const powers = scores.map((score, i) => {
      const power = allowed[i] ? Math.exp(score - most) : 0;
      total += power;
      return power;
    });
    return total ? powers.map((power) => power / total) : powers;
  };

  const sinusoidal = (position, width) =>
    Float32Array.from({ length: width }, (_, i) => {
      const angle = position / BASE ** ((i - (i % 2)) / width);
      return i % 2 ? Math.cos(angle) : Math.sin(angle);
    });
  const rotate = (x, position) => {
    const turned = new Float32Array(x.length);
    for (let i = 0; i < x.length; i += 2) {
      const angle = position / BASE ** (i / x.length);
      const [cos, sin] = [Math.cos(angle), Math.sin(angle)];
      turned[i] = x[i] * cos - x[i + 1] * sin;
      turned[i + 1] = x[i] * sin + x[i + 1] * cos;
    }
    return turned;
  };

  // The parts ------------------------------------------------------------------------------

  /* The tensors below a name: parameters(model, "encoder.norm").gamma */
  const parameters = (model, name) => {
    model.below ??= {};
    if (!model.below[name]) {
      const start = `${name}.`;
      model.below[name] = Object.fromEntries(Object.entries(model.tensors)
        .filter(([each]) => each.startsWith(start))
        .map(([each, tensor]) => [each.slice(start.length), tensor]));
    }
    return model.below[name];
  };
  const has = (model, name) => Object.keys(parameters(model, name)).length > 0;

  /* All that one attention has computed: lists with an entry for each head, of rows. */
  const newAttention = (model, name, own, normName, { causal = false, across = false }) => {
    const lists = () => Array.from({ length: model.config.heads }, () => []);
    return { kind: "attention", name, own, normName, causal, across, input: [], normed: [],
      q: lists(), k: lists(), v: lists(), before: { q: lists(), k: lists() }, scores: lists(),
      weights: lists(), allowed: [], z: lists(), merged: [], added: [], sum: [], output: [] };
  };
  const newFeedForward = (name, own, normName) => ({ kind: "feed_forward", name, own, normName,
    input: [], normed: [], gate: [], up: [], hidden: [], active: [], added: [], sum: [],
    output: [] });

  const pieces = (row, width) => Array.from({ length: row.length / width }, (_, head) =>
    row.slice(head * width, (head + 1) * width));

  /* Keys and values of rows that can be looked up from now on. */
  const remember = (model, part, rows) => {
    const { config: { heads, kv_heads = heads, positions }, width } = model;
    const { w_k, b_k, w_v, b_v } = parameters(model, part.name);
    const shared = heads / kv_heads;
    const keyNorm = part.own === "block" && has(model, `${part.layer}.norm_k`)
      ? parameters(model, `${part.layer}.norm_k`) : null;
    for (const row of rows) {
      const keys = pieces(linear(row, w_k, b_k), width)
        .map((key) => (keyNorm ? rmsNorm(key, keyNorm) : key));
      const values = pieces(linear(row, w_v, b_v), width);
      const place = part.k[0].length;
      const turned = positions === "rotary" ? keys.map((key) => rotate(key, place)) : keys;
      for (let head = 0; head < heads; head += 1) {
        const group = Math.floor(head / shared);
        part.before.k[head].push(keys[group]);
        part.k[head].push(turned[group]);
        part.v[head].push(values[group]);
      }
    }
  };

  /* One query, all heads: what it finds is pushed to the part's lists. */
  const ask = (model, part, row, place, hidden, off) => {
    const { config: { heads, positions }, width } = model;
    const { w_q, b_q, w_o, b_o } = parameters(model, part.name);
    const queryNorm = part.own === "block" && has(model, `${part.layer}.norm_q`)
      ? parameters(model, `${part.layer}.norm_q`) : null;
    const count = part.causal ? place + 1 : part.k[0].length;
    const allowed = Array.from({ length: count }, (_, key) => !hidden.has(key));
    part.allowed.push(allowed);
    const queries = pieces(linear(row, w_q, b_q), width)
      .map((query) => (queryNorm ? rmsNorm(query, queryNorm) : query));
    const merged = new Float32Array(heads * width);
    queries.forEach((plain, head) => {
      const query = positions === "rotary" ? rotate(plain, place) : plain;
      const scores = Float32Array.from(allowed, (_, key) => dot(query, part.k[head][key]));
      const weights = maskedSoftmax(times(scores, 1 / Math.sqrt(width)), allowed);
      const z = new Float64Array(width);
      if (!off.has(`${part.name}/${head}`)) {
        weights.forEach((weight, key) => {
          const value = part.v[head][key];
          for (let i = 0; i < width; i += 1) z[i] += weight * value[i];
        });
      }
      merged.set(z, head * width);
      part.before.q[head].push(plain);
      part.q[head].push(query);
      part.scores[head].push(scores);
      part.weights[head].push(weights);
      part.z[head].push(new Float32Array(z));
    });
    part.merged.push(merged);
    return linear(merged, w_o, b_o);
  };

  const think = (model, part, row) => {
    const { w_1, b_1, w_2, b_2, w_gate, w_up, w_down } = parameters(model, part.name);
    if (w_gate) {
      const [gate, up] = [linear(row, w_gate), linear(row, w_up)];
      part.gate.push(gate);
      part.up.push(up);
      part.active.push(gate.map((value, i) => silu(value) * up[i]));
      return linear(part.active.at(-1), w_down);
    }
    const { activation = model.config.feed_forward } = model.config;
    part.hidden.push(linear(row, w_1, b_1));
    part.active.push(part.hidden.at(-1).map(activation === "gelu" ? gelu : relu));
    return linear(part.active.at(-1), w_2, b_2);
  };

  /* Run a part on new rows: norm, what it computes, residual addition (or the norm after
     it, where the configuration says so). Gives the rows that come out. */
  const run = (model, part, rows, { memory, hidden, off }) => {
    const first = model.config.norm_first ?? true;
    const given = parameters(model, part.normName);
    const start = part.input.length;
    part.input.push(...rows);
    const read = first ? rows.map((row) => normalise(row, given)) : rows;
    part.normed.push(...read);
    if (part.kind === "attention" && !part.across) remember(model, part, read);
    if (part.across && !start) remember(model, part, memory);
    read.forEach((row, i) => {
      const added = part.kind === "attention" ? ask(model, part, row, start + i, hidden, off)
        : think(model, part, row);
      const sum = add(rows[i], added);
      part.added.push(added);
      part.sum.push(sum);
      part.output.push(first ? sum : normalise(sum, given));
    });
    return part.output.slice(start);
  };

  // Towers of layers -----------------------------------------------------------------------

  const newTower = (model, name) => {
    const layers = Array.from({ length: model.config.layers }, (_, i) => {
      if (name === "blocks") {
        const layer = `blocks.${i}`;
        const looks = newAttention(model, `${layer}.attention`, "block", `${layer}.norm_1`,
          { causal: true });
        return [{ ...looks, layer },
          newFeedForward(`${layer}.feed_forward`, "block", `${layer}.norm_2`)];
      }
      const layer = `${name}.layers.${i}`;
      const feed = (number) =>
        newFeedForward(`${layer}.feed_forward`, name, `${layer}.norm_${number}`);
      if (name === "encoder") {
        return [newAttention(model, `${layer}.attention`, name, `${layer}.norm_1`, {}), feed(2)];
      }
      return [
        newAttention(model, `${layer}.self_attention`, name, `${layer}.norm_1`, { causal: true }),
        newAttention(model, `${layer}.cross_attention`, name, `${layer}.norm_2`,
          { across: true }), feed(3)];
    });
    return { name, ids: [], embedded: [], places: [], start: [], layers, final: [] };
  };

  const placeOf = (model, place) => {
    const { kind, positions, d_model } = model.config;
    if (kind === "translator") return sinusoidal(place, d_model);
    if (positions === "rotary") return null;
    return model.tensors["position.table"].data.slice(place * d_model, (place + 1) * d_model);
  };

  /* Read more tokens into a tower. */
  const extend = (model, tower, ids, given) => {
    const { kind, d_model, scaled = true } = model.config;
    const table = model.tensors["embedding.weight"].data;
    const start = tower.ids.length;
    for (const id of ids) {
      const row = table.slice(id * d_model, (id + 1) * d_model);
      const embedded = scaled ? times(row, Math.sqrt(d_model)) : row;
      const place = placeOf(model, tower.ids.length);
      tower.ids.push(id);
      tower.embedded.push(embedded);
      tower.places.push(place);
      tower.start.push(place ? add(embedded, place) : embedded);
    }
    let rows = tower.start.slice(start);
    for (const part of tower.layers.flat()) {
      const hidden = part.across ? given.hiddenSource : given.hidden;
      rows = run(model, part, rows, { ...given, hidden });
    }
    const end = kind === "lm" ? "norm" : `${tower.name}.norm`;
    tower.final.push(...(has(model, end)
      ? rows.map((row) => normalise(row, parameters(model, end))) : rows));
  };

  const outputs = (model, row) => {
    const { data, shape: [count, width] } = model.tensors.output
      ?? model.tensors["embedding.weight"];
    const logits = new Float32Array(count);
    for (let id = 0, at = 0; id < count; id += 1) { // two sums at a time: a width is even
      let [even, odd] = [0, 0];
      for (let i = 0; i < width; i += 2, at += 2) {
        even += row[i] * data[at];
        odd += row[i + 1] * data[at + 1];
      }
      logits[id] = even + odd;
    }
    return logits;
  };

  const NOTHING = { off: new Set(), source: new Set(), target: new Set() };

  /* Begin a reading. `changes` has three sets: `off`, "NAME OF AN ATTENTION/HEAD" of the
     heads that are switched off, and `source` and `target`, the places of tokens that
     nobody may look at. */
  const begin = (model, source, changes = NOTHING) => {
    const given = { off: changes.off, hidden: changes.target, hiddenSource: changes.source };
    const trace = { model, given, logits: [], source: null,
      target: newTower(model, model.kind === "lm" ? "blocks" : "decoder") };
    if (model.kind === "translator") {
      trace.source = newTower(model, "encoder");
      extend(model, trace.source, source, { ...given, hidden: changes.source });
      given.memory = trace.source.final;
    }
    return trace;
  };

  /* Read target tokens; the logits of what follows each are kept. */
  const continued = (trace, ids) => {
    const { model, target, given } = trace;
    const start = target.ids.length;
    extend(model, target, ids, given);
    for (const row of target.final.slice(start)) trace.logits.push(outputs(model, row));
    return trace;
  };

  const read = (model, { source = [], target }, changes) =>
    continued(begin(model, source, changes), target);

  const best = (logits, never = []) => {
    let found = -1;
    for (let id = 0; id < logits.length; id += 1)
      if ((found < 0 || logits[id] > logits[found]) && !never.includes(id)) found = id;
    return found;
  };

  /* Translate greedily; trace.next[i] is the token that is written after target i. */
  const translate = (model, source, changes, most = model.config.max_length) => {
    const trace = begin(model, source, changes);
    trace.next = [];
    let token = SOS;
    while (token !== EOS && trace.target.ids.length < most) {
      continued(trace, [token]);
      token = best(trace.logits.at(-1), [PAD, SOS]);
      trace.next.push(token);
    }
    trace.ended = token === EOS;
    return trace;
  };

  /* Probabilities from logits at a temperature; 0 gives all to the largest. */
  const shares = (logits, temperature = 1) => {
    if (temperature === 0) {
      const first = best(logits);
      return logits.map((_, id) => (id === first ? 1 : 0));
    }
    const all = new Array(logits.length).fill(true);
    return maskedSoftmax(times(logits, 1 / temperature), all);
  };

  /* The first id whose running sum exceeds a number in [0, 1). */
  const draw = (probabilities, uniform) => {
    let sum = 0;
    const found = probabilities.findIndex((each) => (sum += each) > uniform);
    return found < 0 ? best(probabilities) : found;
  };

  return { Refused, open, begin, read, continued, translate, shares, draw, best, size, dot,
    special: { PAD, SOS, EOS } };
})();
