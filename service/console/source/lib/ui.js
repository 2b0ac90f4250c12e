// The names of Preact, signals and htm that views use: one import for each module.
import { Component, Fragment, createContext, h, render } from "preact";
import htm from "htm";

export const html = htm.bind(h);
export { Component, Fragment, createContext, h, render };
export { batch, computed, effect, signal, useComputed, useSignal, useSignalEffect } from "@preact/signals";
export { useCallback, useContext, useEffect, useId, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
