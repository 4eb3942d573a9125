/* A model's folder that a reader gives to a page: dropped onto it, or chosen. Nothing of
   it leaves the page. */
const Folder = (() => {
  "use strict";

  const CONFIG = "config.json";
  const WEIGHTS = "model.safetensors";
  const TOKENIZER = "tokenizer.json";
  const LARGEST = 400e6; // bytes: a page that asks for more than this may be ended

  const entriesOf = (reader) => new Promise((resolve, reject) =>
    reader.readEntries(resolve, reject));
  const fileOf = (entry) => new Promise((resolve, reject) => entry.file(resolve, reject));

  /* The files of what was dropped; a folder gives those that are in it. */
  const dropped = async (transfer) => {
    const entries = [...transfer.items].map((item) => item.webkitGetAsEntry?.());
    if (!entries.some((entry) => entry?.isDirectory)) return [...transfer.files];
    const files = [];
    for (const entry of entries.filter(Boolean)) {
      const inside = entry.isDirectory ? await entriesOf(entry.createReader()) : [entry];
      for (const each of inside) if (each.isFile) files.push(await fileOf(each));
    }
    return files;
  };

  /* What Model.open takes. A file that is not there is null. */
  const read = async (files) => {
    const named = (name) => files.find((file) => file.name === name);
    if (!named(CONFIG)) {
      throw new Model.Refused(`There is no ${CONFIG}. Give the folder that “python -m workbench `
        + `train” has written: ${CONFIG}, ${WEIGHTS} and ${TOKENIZER}.`);
    }
    if (named(WEIGHTS)?.size > LARGEST)
      throw new Model.Refused(`${WEIGHTS} has more than ${LARGEST / 1e6} MB: too much for a page.`);
    const [config, tokenizer] = await Promise.all([CONFIG, TOKENIZER].map((name) =>
      named(name)?.text() ?? null));
    return { config, tokenizer, weights: await named(WEIGHTS)?.arrayBuffer() ?? null };
  };

  /* The same from the files of this site: { name: bytes }. */
  const shipped = (files) => {
    const text = (name) => new TextDecoder().decode(files[name]);
    return { config: text(CONFIG), tokenizer: text(TOKENIZER), weights: files[WEIGHTS].buffer };
  };

  return { dropped, read, shipped };
})();
