const concat = (chunks: readonly Uint8Array[], length: number): Uint8Array<ArrayBuffer> => {
  const bytes = new Uint8Array(length);
  let at = 0;
  for (const chunk of chunks) {
    bytes.set(chunk, at);
    at += chunk.length;
  }
  return bytes;
};

/** The bytes of a stream; undefined, and the rest left unread, when there are more than `limit`. */
export const readUpTo = async (stream: ReadableStream<Uint8Array>, limit: number): Promise<Uint8Array<ArrayBuffer> | undefined> => {
  const reader = stream.getReader();
  const chunks: Uint8Array[] = [];
  let length = 0;
  for (let read = await reader.read(); !read.done; read = await reader.read()) {
    length += read.value.length;
    if (length > limit) {
      // Not awaited: the cancel of a cloned body settles only with its twin.
      reader.cancel().catch(() => {});
      return undefined;
    }
    chunks.push(read.value);
  }
  return concat(chunks, length);
};

/** The body of a request; undefined when it is larger than `limit` bytes. */
export const readRequestBody = async (request: Request, limit: number): Promise<Uint8Array<ArrayBuffer> | undefined> => {
  if (Number(request.headers.get('content-length') ?? 0) > limit) return undefined;
  // Not every browser shows the body of a request as a stream.
  if (request.body) return readUpTo(request.body, limit);
  const bytes = new Uint8Array(await request.arrayBuffer());
  return bytes.length > limit ? undefined : bytes;
};
