// Protocols of devices that report again and again: pass them as `protocols`.
import { rappor } from "./protocols/rappor_client.js";

export const longitudinal = { rappor };
