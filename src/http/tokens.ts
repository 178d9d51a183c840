/** Injection tokens of what isn't a class. */
export const addressPolicyToken = Symbol('AddressPolicy');
export const configToken = Symbol('Config');
export const readinessToken = Symbol('Readiness');
