// The names of Preact, signals and htm that views use: one import for each module.
import { Component, Fragment, h, render } from "preact";
import htm from "htm";

export const html = htm.bind(h);
export { Component, Fragment, h, render };
export { batch, computed, effect, signal, useComputed, useSignal, useSignalEffect } from "@preact/signals";
export { useCallback, useEffect, useId, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
