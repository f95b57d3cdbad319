/** One version of a resource, as the resource's owner counts: never given again to another content. */
export type Version = string | number | bigint;

/** Entity tags of a header, unquoted; `*` stands for any. */
export type TagList = '*' | readonly { readonly tag: string; readonly isWeak: boolean }[];

/** RFC 9110, 8.8.3. Obsolete characters beyond ASCII are not made here, though they are read. */
const TAG = /^[\x21\x23-\x7e]*$/;
/** White space after a tag belongs to the tag: two runs of it side by side would take quadratic time on a hostile header. */
const LISTED = /[ \t]*(?:(W\/)?"([\x21\x23-\x7e\x80-\xff]*)"[ \t]*)?(,|$)/y;

/**
 * The strong entity tag of a version, for the `ETag` header: `"7"`.
 *
 * @throws TypeError when the version has characters that a tag cannot have
 */
export const etagOf = (version: Version): string => {
  if (TAG.test(String(version))) return `"${version}"`;
  throw new TypeError(`The version ${JSON.stringify(String(version))} cannot be an ETag. Use visible ASCII characters without double quotes; a number is always possible.`);
};

/** Reads `If-Match` or `If-None-Match`. Undefined: it is not what RFC 9110 allows there. */
export const readTags = (header: string): TagList | undefined => {
  if (header.trim() === '*') return '*';
  const tags: { tag: string; isWeak: boolean }[] = [];
  for (LISTED.lastIndex = 0; LISTED.lastIndex < header.length; ) {
    const [, weak, tag] = LISTED.exec(header) ?? [undefined, undefined, null];
    if (tag === null) return undefined;
    if (tag !== undefined) tags.push({ tag, isWeak: weak !== undefined });
  }
  return tags.length > 0 ? tags : undefined;
};

/** Strong comparison, of If-Match: a weak tag promises too little to write over what it names. */
export const matchesStrongly = (tags: TagList, current: Version | undefined): boolean =>
  current !== undefined && (tags === '*' || tags.some(({ tag, isWeak }) => !isWeak && tag === String(current)));

/** Weak comparison, of If-None-Match. */
export const matchesWeakly = (tags: TagList, current: Version | undefined): boolean =>
  current !== undefined && (tags === '*' || tags.some(({ tag }) => tag === String(current)));
