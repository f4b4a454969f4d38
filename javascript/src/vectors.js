export { vectors } from "./protocols/projections.js";
