export { means } from "./protocols/means.js";
