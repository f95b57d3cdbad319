export { generic } from './generic.js';
export { ietf } from './ietf.js';
export { stripe } from './stripe.js';
export type { AnswerView, Meaning, Profile, RefusalStyle, Signal } from './profile.js';
