/* What can be said of an English sentence, and of its translation, by rules alone: what
   the model will read, and what speaks against trusting what it writes. The facts come
   from the corpus that it learned from (pages/everyday_lexicon.py). Chapter 9 gives the
   model what `read` makes of a text, and Look inside the text as it was typed. */
const Sentences = (() => {
  "use strict";

  const SHORT = { "won't": "will not", "can't": "cannot", "let's": "let us" };
  const SHORTER = [
    [/^i'm$/, () => "I am"],
    [/^(\w+)n't$/, (start) => `${start} not`],
    [/^(\w+)'re$/, (start) => `${start} are`],
    [/^(\w+)'ll$/, (start) => `${start} will`],
    [/^(\w+)'ve$/, (start) => `${start} have`],
    [/^(i|you|he|she|it|we|they)'d$/, (start) => `${start} would`],
    [/^(he|she|it|that|this|there|here|what|who|where|how|when|why)'s$/,
      (start) => `${start} is`],
  ];
  const ASKING = /^(do|does|did|is|are|am|was|were|can|will|must|should|would|who|what|where|when|why|how)$/;
  const SURE = 0.7; // below this probability a translation is not to be trusted
  const ENDLESS = "It did not find an end.";
  const BEFORE = "^";
  const AFTER = "$";

  const whole = (word) => {
    const small = word.toLowerCase();
    if (SHORT[small]) return SHORT[small];
    for (const [pattern, make] of SHORTER) {
      const found = small.match(pattern);
      if (found) return make(found[1]);
    }
    return word;
  };

  const capital = (text) => text.replace(/^./u, (letter) => letter.toUpperCase());
  const named = (words) => {
    const some = words.slice(0, 4).map((word) => `“${word.slice(0, 30)}”`).join(", ");
    return some + (words.length > 4 ? ` and ${words.length - 4} more` : "");
  };

  /* The probability of all tokens that were written, one after the other: `rows` are the
     logits before each of them. */
  const probabilityOf = (rows, ids) => Math.exp(rows.reduce((sum, row, i) => {
    const most = row.reduce((a, b) => Math.max(a, b));
    const total = row.reduce((all, value) => all + Math.exp(value - most), 0);
    return sum + row[ids[i]] - most - Math.log(total);
  }, 0));

  const make = ({ words, numbers, classes, threes, entries, helping, giving,
    unsaid, sayings }) => {
    const written = new Map(words.map((word) => [word.toLowerCase(), word]));
    const beside = new Set(threes);
    const said = new Set(sayings);
    const freely = new Set(helping);
    const twice = new Set(giving);
    const otherwise = new Set(unsaid);
    const german = new Map(); // an English form -> the entries that it belongs to
    const english = new Map(); // a German form -> likewise
    entries.forEach(([from, to], place) => {
      for (const form of from) german.set(form, [...german.get(form) ?? [], place]);
      for (const form of to) english.set(form, [...english.get(form) ?? [], place]);
    });

    /* Words and signs of a text, as the model reads them, and what was done to it. */
    const read = (text) => {
      const notes = [];
      const plain = text.normalize("NFC").replace(/[’‘´`]/g, "'").replace(/[“”„"«»]/g, " ");
      const pieces = plain.match(/[\p{L}\p{N}\p{M}]+(?:'\p{L}+)*|[^\s]/gu) ?? [];
      const isWord = (piece) => /[\p{L}\p{N}]/u.test(piece);
      const last = pieces.findLastIndex(isWord);
      if (last < 0)
        return { refusal: "There are no words in this: type an English sentence." };
      const ends = pieces.slice(last + 1);
      const inside = pieces.slice(0, last).filter((piece) => !isWord(piece));
      if (inside.some((piece) => /[.!?]/.test(piece)))
        return { refusal: "The model has learned from single sentences: type one at a time." };
      const left = [...inside, ...ends.filter((piece) => !/[.!?]/.test(piece))];
      const given = pieces.filter(isWord).flatMap((piece) => whole(piece).split(" "));
      const unknown = [];
      const row = given.map((word) => numbers[word] ?? word).map((word) => {
        const known = written.get(word.toLowerCase());
        if (!known && !unknown.includes(word)) unknown.push(word);
        return known ?? word;
      }).join(" ").replace(/\bcan not\b/, "cannot").split(" ");
      const asked = ends.includes("?") || (!ends.length && ASKING.test(row[0]));
      const sign = asked ? "?" : ".";
      if (!ends.some((piece) => /[.!?]/.test(piece)))
        notes.push(`I added the ${asked ? "question mark" : "full stop"}.`);
      const sentence = capital(row.join(" ")) + sign;
      const bare = (each) => each.replace(/[\s.!?]/gu, "");
      if (bare(sentence) !== bare(text) || (ends.includes("!") && !asked))
        notes.push(`I read it as “${sentence}”`);
      return { sentence, row, sign, unknown, left: [...new Set(left)], notes, refusal: "" };
    };

    /* The words, those that are one entry together. */
    const joined = (row) => {
      const found = [];
      for (let i = 0; i < row.length;) {
        let size = 3;
        while (size > 1 && !classes[row.slice(i, i + size).join(" ")]) size -= 1;
        found.push(row.slice(i, i + size).join(" "));
        i += size;
      }
      return found;
    };

    /* Whether every three words stand beside each other in training, by their classes;
       and whether a noun right before an article is one that something is given to. */
    const usual = ({ row, sign }) => {
      const all = [BEFORE, ...joined(row).map((word) => classes[word] ?? word), sign, AFTER];
      const two = all.some((name, i) => /^(dogs?|parks?|water|Anna|him)$/.test(name)
        && /^(the|some|this|these)$/.test(all[i + 1]));
      if (two && !row.some((word) => twice.has(word))) return false;
      if (row.some((word, i) => otherwise.has(`${word} ${row[i + 1]}`))) return false;
      const choices = (name) => (name.length > 1 && name.includes("|")
        ? [name, ...name.split("|")] : [name]);
      return all.slice(2).every((third, i) => choices(all[i]).some((one) =>
        choices(all[i + 1]).some((two) => choices(third).some((three) =>
          beside.has([one, two, three].join("\t"))))));
    };

    /* Words that were lost, made up, or said more often than there is reason to. */
    const misfits = ({ row }, translation) => {
      const sources = joined(row).flatMap((word) => (german.has(word) ? [word]
        : word.split(" ")));
      const made = translation.match(/[\p{L}]+/gu) ?? [];
      const lower = (word) => word.charAt(0).toLowerCase() + word.slice(1);
      const entriesOf = (word, first) => [...english.get(word) ?? [],
        ...(first ? english.get(lower(word)) ?? [] : [])];
      const free = (word, i) => freely.has(i ? word : lower(word));
      const inGerman = made.map((word, i) => entriesOf(word, i === 0));
      const inEnglish = sources.map((word) => german.get(word) ?? []);
      const lost = sources.filter((_, i) => inEnglish[i].length
        && !inEnglish[i].some((place) => inGerman.some((places) => places.includes(place))));
      const invented = made.filter((word, i) => inGerman[i].length && !free(word, i)
        && !inGerman[i].some((place) => inEnglish.some((places) => places.includes(place))));
      const count = (word, list) => list.filter((each) => each === word).length;
      const repeated = made.filter((word, i) => inGerman[i].length && made.indexOf(word) !== i
        && !free(word, i)
        && count(word, made) > inEnglish.filter((places) =>
          places.some((place) => inGerman[i].includes(place))).length);
      const again = made.filter((word, i) => i > 2 && word === made[i - 2]
        && made[i - 1] === made[i - 3]);
      return { lost, invented, repeated: [...new Set([...repeated, ...again])] };
    };

    /* Reasons not to trust a translation; none is no proof that it is right. */
    const doubts = (reading, translation, probability, ended) => {
      const found = [];
      if (reading.unknown.length) found.push(`I do not know ${named(reading.unknown)}.`);
      if (reading.left.length) found.push(`I left out ${named(reading.left)}.`);
      if (!ended) found.push(ENDLESS);
      if (!said.has(reading.sentence)) {
        if (!reading.unknown.length && !usual(reading))
          found.push("I know the words, but never learned from a sentence of this form.");
        const { lost, invented, repeated } = misfits(reading, translation);
        if (repeated.length) found.push(`The translation repeats ${named(repeated)}.`);
        if (lost.length) found.push(`It seems to lack ${named(lost)}.`);
        if (invented.length) found.push(`Nothing that you wrote means ${named(invented)}.`);
      }
      if (probability < SURE)
        found.push("The model itself gives it little probability.");
      return found;
    };

    /* The same where the model has read the text itself, and not what `read` makes of it:
       the model knows no other form than that. */
    const doubtsAsTyped = (text, translation, probability, ended) => {
      const reading = read(text);
      if (reading.refusal) return [reading.refusal, ...(ended ? [] : [ENDLESS])];
      const found = doubts({ ...reading, left: [] }, translation, probability, ended);
      const { sentence } = reading;
      return sentence === text.trim() ? found
        : [`Type “${sentence}”: I learned no other form.`, ...found];
    };

    return { read, doubts, doubtsAsTyped };
  };

  return { make, capital, named, probabilityOf, ENDLESS };
})();
