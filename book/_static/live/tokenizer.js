/* The course's byte pairs in the page: the same ids as workbench/data/tokenizer.py. */
const Tokens = (() => {
  "use strict";

  // Each byte has a letter that can be printed: itself, or one from 256 on.
  const letters = [];
  const bytes = new Map();
  let unprintable = 0;
  for (let byte = 0; byte < 256; byte += 1) {
    const printable = (byte >= 33 && byte <= 126) || (byte >= 161 && byte !== 173);
    letters[byte] = String.fromCodePoint(printable ? byte : 256 + unprintable++);
    bytes.set(letters[byte], byte);
  }

  // White space as the tokenizer's library has it; JavaScript's \s differs by two signs.
  const SPACE = "\\t-\\r \\u0085\\u00a0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000";
  const PIECES = new RegExp("'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+"
    + `| ?[^${SPACE}\\p{L}\\p{N}]+|[${SPACE}]+(?![^${SPACE}])|[${SPACE}]+`, "gu");
  const EDGES = new RegExp(`^[${SPACE}\\x1c-\\x1f]+|[${SPACE}\\x1c-\\x1f]+$`, "gu");

  const encoder = new TextEncoder();
  const lettersOf = (text) => [...encoder.encode(text)].map((byte) => letters[byte]);

  const bytesOf = (pieces) =>
    Uint8Array.from([...pieces.join("")].map((letter) => bytes.get(letter)));

  /* The text of tokens; what is not whole UTF-8 becomes �. */
  const textOf = (pieces) =>
    new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytesOf(pieces));

  /* The same for people, who get the numbers of bytes that are no text. */
  const readable = (pieces) => {
    const text = textOf(pieces);
    return text.includes("\ufffd") ? [...bytesOf(pieces)].map((byte) =>
      byte.toString(16).padStart(2, "0")).join(" ") : text;
  };

  const make = (vocabulary, merges) => {
    const ids = new Map(vocabulary.map((piece, id) => [piece, id]));
    const size = vocabulary.length;
    const ranks = new Map(merges.map(([left, right], rank) =>
      [ids.get(left) * size + ids.get(right), { rank, id: ids.get(left + right) }]));
    const longest = Math.max(...vocabulary.map((piece) => piece.length));

    /* Join the pair that was learned first, the leftmost of them, while there is one. */
    const join = (piece) => {
      const row = lettersOf(piece).map((letter) => ids.get(letter));
      for (;;) {
        let best = null;
        let place = -1;
        for (let i = 0; i + 1 < row.length; i += 1) {
          const found = ranks.get(row[i] * size + row[i + 1]);
          if (found && (!best || found.rank < best.rank)) [best, place] = [found, i];
        }
        if (!best) return row;
        row.splice(place, 2, best.id);
      }
    };

    const encode = (text) =>
      ` ${text.replace(EDGES, "")}`.match(PIECES).flatMap((piece) => join(piece));

    /* A text has at least so many tokens: known at once, however long it is. */
    const minimum = (text) => Math.ceil(encoder.encode(text).length / longest);

    const decode = (row) =>
      textOf(row.filter((id) => id > 3).map((id) => vocabulary[id])).replace(/^ /, "");

    return { encode, decode, minimum, piece: (id) => vocabulary[id], size };
  };

  /* A translator's tokenizer.json, as the library `tokenizers` writes it. */
  const ofFile = ({ model, pre_tokenizer: { type } }) => {
    const { vocab, merges } = model;
    const vocabulary = Object.keys(vocab).sort((a, b) => vocab[a] - vocab[b]);
    const whole = vocabulary.every((piece, id) => vocab[piece] === id)
      && letters.every((letter) => letter in vocab)
      && merges.every(([left, right]) => left + right in vocab);
    if (type !== "ByteLevel" || !whole) throw new Error("another tokenizer");
    const made = make(vocabulary, merges);
    const text = (id) => (id > 3 ? readable([vocabulary[id]]) : vocabulary[id]);
    return { ...made, text };
  };

  // The language models' tokens are of characters, not of bytes -----------------------------

  const GAP = `${SPACE}\\x1c-\\x1f`;
  const WORDS = new RegExp(` ?[\\p{L}\\p{N}_]+| ?[^\\p{L}\\p{N}_${GAP}]+`
    + `|[${GAP}]+(?![^${GAP}])|[${GAP}]+`, "gu");

  /* Join every occurrence of a pair, from the left, as merge_pair does. */
  const joined = (symbols, [left, right]) => {
    const made = [];
    for (let i = 0; i < symbols.length; i += 1) {
      const found = symbols[i] === left && symbols[i + 1] === right;
      made.push(found ? left + right : symbols[i]);
      if (found) i += 1;
    }
    return made;
  };

  /* A language model's tokenizer.json: workbench/data/text_tokenizer.py writes it. */
  const ofText = ({ kind, alphabet, merges }) => {
    if (kind !== "text" || ![...alphabet, ...merges.flat()].every((each) =>
      typeof each === "string" && each)) throw new Error("another tokenizer");
    const vocabulary = [...new Set([...alphabet, ...merges.map((pair) => pair.join(""))])];
    const ids = new Map(vocabulary.map((piece, id) => [piece, id]));
    const known = new Set(alphabet);
    const cut = new Map(); // piece -> ids
    const cutPiece = (piece) => {
      if (!cut.has(piece)) {
        const symbols = merges.reduce((row, pair) => (row.length > 1 ? joined(row, pair) : row),
          [...piece]);
        cut.set(piece, symbols.map((symbol) => ids.get(symbol)));
      }
      return cut.get(piece);
    };
    /* Characters that the model has never read; they have no token. */
    const strange = (text) => [...new Set(text)].filter((letter) => !known.has(letter));
    const encode = (text) => (merges.length ? text.match(WORDS) ?? [] : [...text])
      .flatMap((piece) => cutPiece(piece));
    const text = (id) => vocabulary[id];
    return { encode, strange, text, piece: text, size: vocabulary.length,
      decode: (row) => row.map(text).join("") };
  };

  return { make, ofFile, ofText, readable, textOf };
})();
