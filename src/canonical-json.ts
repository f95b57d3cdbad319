// White space is JSON's own: a byte order mark, which \s would skip, is no part of JSON. The string is unrolled, because
// an alternative per character would exhaust the stack of the matcher on long ones.
const TOKEN =
  /[ \t\n\r]*(?:("[^"\\\u0000-\u001f]*(?:\\(?:["\\/bfnrt]|u[\da-fA-F]{4})[^"\\\u0000-\u001f]*)*")|(-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?)|(true|false|null)|([{}[\],:]))/y;

const BLANK = /^[ \t\n\r]*$/;

/** Longer exponents lose digits as a number; nobody means one. */
const MAX_EXPONENT_DIGITS = 15;

/** Deeper than any honest request; a hostile one must not exhaust the stack. */
const MAX_DEPTH = 200;

/** More than in any honest request that is not an import of a file; each takes about a microsecond, in which nobody else is served. */
const MAX_TOKENS = 200_000;

class NotCanonical extends Error {}

/** One spelling per exact value: 1, 1.0 and 1e0 are equal, 9007199254740993 and …992 are not. */
const canonicalNumber = (lexeme: string): string => {
  const [, sign = '', whole = '', fraction = '', exponent = '0'] = /^(-?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/.exec(lexeme) ?? [];
  if (exponent.length > MAX_EXPONENT_DIGITS) throw new NotCanonical();
  const digits = (whole + fraction).replace(/^0+/, '');
  // Not /0+$/, which takes quadratic time on a hostile run of zeros.
  let length = digits.length;
  while (digits[length - 1] === '0') length -= 1;
  const significant = digits.slice(0, length);
  return significant === '' ? '0' : `${sign}${significant}e${Number(exponent) - fraction.length + digits.length - significant.length}`;
};

/**
 * JSON text with one spelling per value: members sorted, no white space, strings and numbers in one form. Array order
 * is kept. Returns undefined for text that has no single meaning (not JSON, or a member name given twice), or too many
 * parts to take apart while others wait; its bytes then speak for themselves.
 */
export const canonicalJson = (text: string): string | undefined => {
  let at = 0;
  let tokens = 0;
  const next = (): RegExpExecArray => {
    TOKEN.lastIndex = at;
    const token = TOKEN.exec(text);
    tokens += 1;
    if (!token || tokens > MAX_TOKENS) throw new NotCanonical();
    at = TOKEN.lastIndex;
    return token;
  };
  const list = (close: string, item: (first: RegExpExecArray) => string): string[] => {
    const items: string[] = [];
    for (let token = next(); ; token = next()) {
      if (token[4] === close && items.length === 0) return items;
      items.push(item(token));
      const separator = next()[4];
      if (separator === close) return items;
      if (separator !== ',') throw new NotCanonical();
    }
  };
  const string = (token: RegExpExecArray): string => {
    if (token[1] === undefined) throw new NotCanonical();
    // Without an escape it is in its one form already; most strings are.
    return token[1].includes('\\') ? JSON.stringify(JSON.parse(token[1])) : token[1];
  };
  const object = (depth: number): string => {
    const names = new Set<string>();
    const members = list('}', token => {
      const name = string(token);
      if (names.has(name) || next()[4] !== ':') throw new NotCanonical();
      names.add(name);
      return `${name}:${value(next(), depth)}`;
    });
    return `{${members.sort().join(',')}}`;
  };
  const value = (token: RegExpExecArray, depth: number): string => {
    if (depth > MAX_DEPTH) throw new NotCanonical();
    if (token[1] !== undefined) return string(token);
    if (token[2] !== undefined) return canonicalNumber(token[2]);
    if (token[3] !== undefined) return token[3];
    if (token[4] === '{') return object(depth + 1);
    if (token[4] === '[') return `[${list(']', item => value(item, depth + 1)).join(',')}]`;
    throw new NotCanonical();
  };
  try {
    const result = value(next(), 0);
    return BLANK.test(text.slice(at)) ? result : undefined;
  } catch (error) {
    if (error instanceof NotCanonical) return undefined;
    throw error;
  }
};
