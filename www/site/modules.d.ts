// What the bundler turns other files into.

declare module "*.wgsl" {
  const text: string;
  export default text;
}

declare module "*.wgslab" {
  const text: string;
  export default text;
}

declare module "*.css" {}
