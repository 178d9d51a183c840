export { labelAttributes } from '../contracts/search-attributes.js';
