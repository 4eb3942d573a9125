/* A model's folder that a reader gives to a page: dropped onto it, or chosen. Nothing of
   it leaves the page. */
const Folder = (() => {
  "use strict";

  const CONFIG = "config.json";
  const WEIGHTS = "model.safetensors";
  const TOKENIZER = "tokenizer.json";
  const RULES = "rules.json"; // only of this site's own
  const LARGEST = 400e6; // bytes: a page that asks for more than this may be ended

  const entriesOf = (reader) => new Promise((resolve, reject) =>
    reader.readEntries(resolve, reject));
  const fileOf = (entry) => new Promise((resolve, reject) => entry.file(resolve, reject));

  const filesOfEntry = async (entry) => {
    const inside = entry.isDirectory ? await entriesOf(entry.createReader()) : [entry];
    return Promise.all(inside.filter((each) => each.isFile).map(fileOf));
  };
  /* Chromium reads an entry on a page of a server only, and a handle also from a disk. */
  const filesOfHandle = async (handle) => {
    if (handle.kind === "file") return [await handle.getFile()];
    const files = [];
    for await (const each of handle.values())
      if (each.kind === "file") files.push(await each.getFile());
    return files;
  };

  /* The files of what was dropped; a folder gives those that are in it. All that is in the
     transfer is asked for at once: it is empty after the event. */
  const dropped = async (transfer) => {
    const items = [...transfer.items], files = [...transfer.files];
    const entries = items.map((item) => item.webkitGetAsEntry?.()).filter(Boolean);
    const handles = items.map((item) => item.getAsFileSystemHandle?.()).filter(Boolean);
    if (!entries.some(({ isDirectory }) => isDirectory)) return files;
    try {
      const found = handles.length ? (await Promise.all(handles)).map(filesOfHandle)
        : entries.map(filesOfEntry);
      return (await Promise.all(found)).flat();
    } catch {
      throw new Model.Refused("This browser lets no page read a folder that is dropped. Choose "
        + "the folder's three files below.");
    }
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

  /* The same from the files of this site: { name: bytes }; with what it knows of the
     sentences that the model learned from, where it knows that. */
  const shipped = (files) => {
    const text = (name) => new TextDecoder().decode(files[name]);
    return { config: text(CONFIG), tokenizer: text(TOKENIZER), weights: files[WEIGHTS].buffer,
      rules: files[RULES] ? JSON.parse(text(RULES)) : null };
  };

  return { dropped, read, shipped };
})();
