/* The course's byte pairs in the page: the same ids as workbench/tokenizer.py. */
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

    return { encode, decode, minimum, piece: (id) => vocabulary[id] };
  };

  return { make, readable, textOf };
})();
