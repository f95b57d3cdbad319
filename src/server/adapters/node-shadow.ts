/**
 * Lays properties over an object's own. The function that it returns takes them away and brings back what was there.
 * It may be called more than once.
 */
export const shadow = (target: object, properties: PropertyDescriptorMap): (() => void) => {
  const before = Object.keys(properties).map(name => [name, Object.getOwnPropertyDescriptor(target, name)] as const);
  let laid = true;
  for (const [name, descriptor] of Object.entries(properties)) Object.defineProperty(target, name, { configurable: true, enumerable: true, ...descriptor });
  return () => {
    if (!laid) return;
    laid = false;
    for (const [name, descriptor] of before) {
      if (descriptor) Object.defineProperty(target, name, descriptor);
      else Reflect.deleteProperty(target, name);
    }
  };
};
