/* What stands before every worker: the parts of a script that was loaded (live_models.py
   has put them together), and addresses for them. */
"use strict";

/* base64 of gzip -> { name: bytes } */
const unpack = async (text) => {
  const letters = atob(text);
  const packed = new Uint8Array(letters.length);
  for (let i = 0; i < packed.length; i += 1) packed[i] = letters.charCodeAt(i);
  const stream = new Blob([packed]).stream()
    .pipeThrough(new DecompressionStream("gzip"));
  const all = await new Response(stream).arrayBuffer();
  const decoder = new TextDecoder();
  const length = new DataView(all).getUint32(0, true);
  const names = JSON.parse(decoder.decode(new Uint8Array(all, 4, length)));
  const files = {};
  let place = 4 + length;
  for (const [name, size] of Object.entries(names)) {
    files[name] = new Uint8Array(all.slice(place, place + size));
    place += size;
  }
  return files;
};

const address = (content) =>
  URL.createObjectURL(new Blob([content], { type: "text/javascript" }));
