/* The course's functions once more, for figures: matrices are arrays of rows. The tests
   compare each with the function of the same name in solutions/transformer/. */
const Mathematics = (() => {
  "use strict";

  const dot = (a, b) => a.reduce((sum, value, i) => sum + value * b[i], 0);
  const transpose = (a) => a[0].map((_, j) => a.map((row) => row[j]));
  const add = (a, b) => a.map((row, i) => row.map((value, j) => value + b[i][j]));
  const scale = (a, factor) => a.map((row) => row.map((value) => value * factor));

  /* (n, m) times (m, p) */
  const multiply = (a, b) => {
    const columns = transpose(b);
    return a.map((row) => columns.map((column) => dot(row, column)));
  };

  /* Weights from scores; -Infinity gives exactly 0. A row of -Infinity alone gives NaN. */
  const softmax = (scores) => {
    const largest = Math.max(...scores);
    const powers = scores.map((score) => Math.exp(score - largest));
    const sum = powers.reduce((total, power) => total + power, 0);
    return powers.map((power) => power / sum);
  };

  /* scaled_dot_product_attention, with all that it computes on its way. `mask` is true
     where a query (row) may see a key (column); `root` is what scores are divided by. */
  const attention = (q, k, v, mask = null, root = Math.sqrt(q[0].length)) => {
    const scores = multiply(q, transpose(k));
    const scaled = scale(scores, 1 / root);
    const masked = scaled.map((row, i) =>
      row.map((score, j) => (!mask || mask[i][j] ? score : -Infinity)));
    const weights = masked.map(softmax);
    return { scores, scaled, masked, weights, output: multiply(weights, v) };
  };

  /* online_step for one query: a tile of scores and values more. What was summed up is
     measured from the maximum; a larger one rescales it by `factor`. */
  const onlineStep = ({ maximum, total, output }, scores, values) => {
    const larger = Math.max(maximum, ...scores);
    const base = larger === -Infinity ? 0 : larger; // -Infinity - -Infinity is NaN
    const factor = Math.exp(maximum - base);
    const powers = scores.map((score) => Math.exp(score - base));
    const [mixed] = multiply([powers], values);
    return { maximum: larger, factor, powers,
      total: factor * total + powers.reduce((sum, power) => sum + power, 0),
      output: output.map((value, i) => factor * value + mixed[i]) };
  };

  /* Each vector to mean 0 and variance 1 (the biased one), as nn.LayerNorm begins. */
  const layerNorm = (vector, epsilon = 1e-5) => {
    const mean = vector.reduce((sum, value) => sum + value, 0) / vector.length;
    const centred = vector.map((value) => value - mean);
    const variance = dot(centred, centred) / vector.length;
    return centred.map((value) => value / Math.sqrt(variance + epsilon));
  };

  /* Vaswani et al. 2017, section 3.5: one position's d_model values, sines at even
     dimensions. */
  const sinusoidal = (position, d_model, base = 10000) =>
    Array.from({ length: d_model }, (_, i) => {
      const angle = position / base ** ((i - (i % 2)) / d_model);
      return i % 2 ? Math.cos(angle) : Math.sin(angle);
    });

  /* attention_rollout: weights are layers of heads of (T, T). `share` is how much of each
     layer is attention; the rest is the residual connection. */
  const attentionRollout = (weights, share = 0.5) => weights.reduce((before, heads) => {
    const mixed = heads[0].map((row, i) => row.map((_, j) =>
      (share * heads.reduce((sum, head) => sum + head[i][j], 0)) / heads.length
        + (i === j ? 1 - share : 0)));
    return before ? multiply(mixed, before) : mixed;
  }, null);

  return { dot, transpose, add, scale, multiply, softmax, attention, onlineStep,
    layerNorm, sinusoidal, attentionRollout };
})();
