// SPDX-License-Identifier: Apache-2.0
// Colours of values, for light and dark pages.

const RAMPS = {
  // From nothing to much; nothing has the colour of the page.
  amount: {
    light: ['#f4f5fb', '#cfd5fb', '#98a2f5', '#5b5be6', '#3a2fb0', '#1e1763'],
    dark: ['#171b29', '#272f66', '#424bc4', '#7b86f7', '#b9c3ff', '#f3f5ff'],
  },
  // From below to above zero.
  signed: {
    light: ['#0b5c79', '#4aa3bf', '#b9dde8', '#f6f6f8', '#f7cfb4', '#e08a4c', '#9a4710'],
    dark: ['#7fd8f2', '#3d9cba', '#1f5266', '#1a1d29', '#6b3d1c', '#c9763a', '#ffb98a'],
  },
};

export function isDark() {
  const theme = document.documentElement.dataset.theme;
  return theme ? theme === 'dark' : matchMedia('(prefers-color-scheme: dark)').matches;
}

const channels = (color) => [1, 3, 5].map((at) => parseInt(color.slice(at, at + 2), 16));

// color(share): share from 0 to 1 as [red, green, blue].
export function ramp(name) {
  const stops = RAMPS[name][isDark() ? 'dark' : 'light'].map(channels);
  return (share) => {
    const place = Math.min(Math.max(share || 0, 0), 1) * (stops.length - 1);
    const below = Math.min(Math.floor(place), stops.length - 2);
    return stops[below].map((value, i) => Math.round(value + (stops[below + 1][i] - value) * (place - below)));
  };
}

// Black or white, whichever reads better on the colour.
export const inkOn = ([red, green, blue]) => red * 0.299 + green * 0.587 + blue * 0.114 > 140 ? '#14161f' : '#ffffff';

// A colour of the style sheet, for canvases.
export const cssColor = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

export const SERIES = 12;
export const seriesName = (index) => `--series-${index % SERIES}`;
