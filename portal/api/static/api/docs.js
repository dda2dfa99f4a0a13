// Dark as the system is, unless a theme was chosen in the portal.
"use strict";
(() => {
  const { theme } = document.documentElement.dataset;
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const show = () => document.documentElement.classList.toggle("dark-mode", theme === "dark" || (theme !== "light" && dark.matches));
  dark.addEventListener("change", show);
  show();
})();
